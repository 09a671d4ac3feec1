"""Decoding of multi-head latent attention. See README.md for formulas, sources and figures."""
