"""What a log says."""
