"""What the suite of kernels reports."""
