"""Cells in containers of a Docker engine, of this host's architecture or, by qemu, of another."""
