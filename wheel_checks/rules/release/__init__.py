"""The rules of a release: its matrix, its files, and parity across architectures."""
