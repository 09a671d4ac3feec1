"""``wheelproof completion``, and the scripts that it prints."""
