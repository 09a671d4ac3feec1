"""The torch of a host: which build fits, which one is there, and where it came from."""
