"""Triton, its compiler, and their requirements."""
