"""The matrix: platforms by Pythons by torch versions, each cell taken through the whole way of an install."""
