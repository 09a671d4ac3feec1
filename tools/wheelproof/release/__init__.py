"""The application behind ``wheelproof release``: the gate before publishing."""
