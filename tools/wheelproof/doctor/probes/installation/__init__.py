"""Read installed distributions, their files, compiled modules, and origins."""
