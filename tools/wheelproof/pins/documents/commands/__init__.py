"""The packages that commands install, in any kind of file."""
