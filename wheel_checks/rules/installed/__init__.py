"""The rules of an installed environment and its distributions."""
