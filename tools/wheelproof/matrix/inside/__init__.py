"""Scripts that run in the place of a cell, under its interpreter: files of the standard library alone."""
