"""The Windows libraries in a wheel, with their needs."""
