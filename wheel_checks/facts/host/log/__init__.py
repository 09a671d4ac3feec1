"""The facts in a log."""
