"""The rules of one wheel."""
