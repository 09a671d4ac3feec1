"""The configuration of uv and pip: the files that hold in a folder, and the indexes that they name."""
