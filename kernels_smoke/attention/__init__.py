"""Attention over a paged cache of keys and values. See README.md for formulas, sources and figures."""
