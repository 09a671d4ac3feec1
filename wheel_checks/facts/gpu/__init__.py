"""GPU code: the members that have some, its targets, and the GPUs that run it."""
