"""The command line of wheelproof and its applications."""

__version__ = "0.1.0"
