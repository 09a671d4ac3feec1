"""The version of wheelproof, which its build reads, too."""

__version__ = "0.1.0"
