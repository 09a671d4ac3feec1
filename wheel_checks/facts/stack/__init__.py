"""Facts about the packages of one resolution together."""
