"""The differences between two wheels, and the pairing of the wheels of two sets."""
