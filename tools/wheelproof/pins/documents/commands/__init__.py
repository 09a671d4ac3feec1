"""What commands install, whatever file they stand in."""
