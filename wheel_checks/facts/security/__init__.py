"""What a wheel runs without being asked, and where its files land."""
