"""``wheelproof report`` and its subcommands."""
