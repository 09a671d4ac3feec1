"""Predict the effect of an install on torch."""
