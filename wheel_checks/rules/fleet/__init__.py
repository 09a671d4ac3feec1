"""Rules about a fleet, read by `wheelproof report merge`."""

KIND = "fleet"
