"""One wheel, and the wheels that it requires."""
