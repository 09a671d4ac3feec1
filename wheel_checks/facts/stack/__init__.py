"""What is known about the packages of one resolution together."""
