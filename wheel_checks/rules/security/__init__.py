"""Rules about code that a wheel runs automatically, and about the paths it writes to: SEC001 to SEC012."""
