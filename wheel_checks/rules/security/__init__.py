"""Rules about what a wheel runs without being asked, and where it writes: SEC001 to SEC012."""
