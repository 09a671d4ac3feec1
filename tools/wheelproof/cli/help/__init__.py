"""How help is written."""
