"""GPU code inside libraries: CUDA's fat binaries."""
