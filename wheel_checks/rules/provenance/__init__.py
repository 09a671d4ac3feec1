"""The rules about the origin of files."""
