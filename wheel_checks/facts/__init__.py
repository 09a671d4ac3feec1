"""What is known about a wheel: frozen facts, and the readers that gather them from bytes."""
