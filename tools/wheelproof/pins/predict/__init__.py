"""What an install would do to torch."""
