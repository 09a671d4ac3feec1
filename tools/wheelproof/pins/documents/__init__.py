"""Documents that hold requirements: one module per format, each with ``read(source) -> Document``."""
