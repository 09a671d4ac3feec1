"""The processes in which kernels run: the foreman, which forks them, and the crew, which follows them."""
