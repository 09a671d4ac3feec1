"""The suite: which kernels there are, how one is run and judged, and the processes in which that happens."""
