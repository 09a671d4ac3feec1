"""The GPUs of a host: what the kernel shows of them, which are there, which are visible, and who made them."""
