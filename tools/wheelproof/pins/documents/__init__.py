"""Documents with requirements: one module per format, each with ``read(source) -> Document``."""
