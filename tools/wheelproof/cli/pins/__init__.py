"""``wheelproof pins`` and its subcommands."""
