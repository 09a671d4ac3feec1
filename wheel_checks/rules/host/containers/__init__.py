"""Containers, schedulers and sandboxes: access to the GPU, and their limits."""
