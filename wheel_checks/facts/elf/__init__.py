"""The ELF files among the members of a wheel, read from as few bytes as possible."""
