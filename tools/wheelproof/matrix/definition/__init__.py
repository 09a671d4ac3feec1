"""The file of a matrix: its keys, how it is read, and the list of its cells."""
