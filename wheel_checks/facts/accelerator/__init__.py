"""The accelerator that a wheel is built for, and the signals that show it."""
