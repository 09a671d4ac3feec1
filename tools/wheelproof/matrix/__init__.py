"""The matrix: architectures, Pythons, torch versions and accelerators, each taken through the whole way of an install."""
