"""The files of a tree that are rewritten: found, within its root, and read."""
