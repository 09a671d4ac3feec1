"""The application of ``wheelproof release``: the gate before publishing."""
