"""What is installed: distributions, their files, compiled modules, and where all of it came from."""
