"""Shared by verify, stack, release and diff: the wheels to judge, reading and judging many of them, machines."""
