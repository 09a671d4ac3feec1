"""Compiling kernels ahead of time, for a GPU that is here or not, and what the machine code shows."""
