"""A torch wheel that does not fit the host: its build, its origin, and its platform."""
