"""The matrix: platform x Python x torch, with every cell tested end to end."""
