"""A torch wheel that does not fit the host: its build, where it came from, and its platform."""
