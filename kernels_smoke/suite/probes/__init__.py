"""Probes: the installation, the compiler, the driver, the GPU, libraries and NCCL."""
