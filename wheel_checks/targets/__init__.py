"""The machine and Python that a wheel is meant for, and the file that an installer would take there."""
