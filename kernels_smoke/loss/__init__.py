"""Losses with their gradients in one launch. See README.md for formulas and sources."""
