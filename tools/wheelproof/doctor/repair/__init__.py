"""``doctor --fix`` and ``--undo``: a plan that breaks nothing that is installed, and that can be undone."""
