"""Rules about a fleet: what `wheelproof report merge` has read of its hosts."""

KIND = "fleet"
