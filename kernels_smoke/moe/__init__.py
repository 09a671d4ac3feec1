"""Grouped products for a mixture of experts. See README.md for formulas, sources and figures."""
