"""Timing kernels, and calibrating the GPU."""
