"""Norms of rows. See README.md for formulas, sources and figures."""
