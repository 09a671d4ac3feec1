"""Builders of what rules judge: wheels, ELF files, fat binaries, drivers, servers: whole, or with one thing broken."""
