"""Facts about a wheel: frozen dataclasses, and the readers that make them from bytes."""
