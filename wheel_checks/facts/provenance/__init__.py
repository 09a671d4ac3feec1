"""The origin of files: offers of several indexes, and records of earlier runs."""
