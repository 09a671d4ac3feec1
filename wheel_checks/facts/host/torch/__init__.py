"""The torch of a host: which build fits, which one is present, and where it came from."""
