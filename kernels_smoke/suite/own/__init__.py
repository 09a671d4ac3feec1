"""Kernels of other packages: found in a file, a module or an entry point, described, guarded, mutated."""
