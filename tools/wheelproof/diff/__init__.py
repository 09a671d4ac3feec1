"""The application of ``wheelproof diff``: compare two wheels, or two sets of wheels."""
