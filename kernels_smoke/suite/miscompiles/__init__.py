"""Probes for compilers that are known to have compiled a kernel wrongly. See README.md for who, when and what to do."""
