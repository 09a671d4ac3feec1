"""The report of the kernel suite."""
