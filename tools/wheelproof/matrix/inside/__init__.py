"""What runs in place of a cell, under its interpreter: files of the standard library alone."""
