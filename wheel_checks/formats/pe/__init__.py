"""Portable Executable files: the libraries and programs of Windows."""
