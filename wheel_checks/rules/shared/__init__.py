"""Findings shared by rules of several subjects."""
