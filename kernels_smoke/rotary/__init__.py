"""Norm and rotary embedding of attention heads. See README.md for formulas, sources and figures."""
