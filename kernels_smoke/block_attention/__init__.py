"""Attention within blocks of 64 tokens, and its gradients. See README.md for formulas, sources and figures."""
