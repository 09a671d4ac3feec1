"""What verify, stack, release and diff share: the wheels to judge, reading and judging many of them, machines."""
