"""``wheelproof matrix`` and its subcommands."""
