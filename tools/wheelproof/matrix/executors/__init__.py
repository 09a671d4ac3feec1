"""Executors of a matrix's cells: in an environment of this host, or in a container."""
