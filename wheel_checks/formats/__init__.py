"""Bytes in, facts out. Nothing here opens a file or a connection, and nothing imports the rest of the package."""
