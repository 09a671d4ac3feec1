"""Timing kernels, calibrating the GPU, and the roofline."""
