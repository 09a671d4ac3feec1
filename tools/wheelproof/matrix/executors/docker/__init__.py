"""Cells in containers of a Docker engine, of this machine's architecture or, by qemu, of another."""
