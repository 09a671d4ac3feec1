"""What differs between two wheels, and which wheel of one set is compared with which of another."""
