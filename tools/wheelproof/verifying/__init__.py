"""The application of ``wheelproof verify``: plan, read, judge."""
