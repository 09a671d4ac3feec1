"""A release: what it must be, and the files that it has."""
