"""What commands install, whatever file they are in."""
