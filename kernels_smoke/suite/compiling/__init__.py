"""Compiling kernels ahead of time, for a GPU that is here or not, and inspecting their machine code."""
