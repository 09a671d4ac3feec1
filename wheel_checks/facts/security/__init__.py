"""Code of a wheel that runs automatically, and the install paths of its files."""
