"""The rules about where files come from."""
