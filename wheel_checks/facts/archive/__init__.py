"""The archive that a wheel is: its members and what reading every byte finds."""
