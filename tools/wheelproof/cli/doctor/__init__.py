"""``wheelproof doctor``, with its repairs, and ``wheelproof explain``."""
