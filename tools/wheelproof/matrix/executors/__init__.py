"""Where the cells of a matrix run: in an environment of this host, or in a container."""
