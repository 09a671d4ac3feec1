"""How kernels are launched: checks of arguments, calls that are laid out once, launches without Triton's Python."""
