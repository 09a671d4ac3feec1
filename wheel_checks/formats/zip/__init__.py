"""Zip archives: the directory, headers, members, and deflate streams that are read from their end."""
