"""Probes for known miscompilations. See README.md for the compilers, dates and remedies."""
