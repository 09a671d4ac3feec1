"""The GPU, the kernel, NVIDIA's driver and its libraries."""
