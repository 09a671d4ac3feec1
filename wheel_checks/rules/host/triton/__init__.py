"""Triton and its compiler, and what they need around them."""
