"""Where the cells of a matrix run: in an environment of this machine, or in a container."""
