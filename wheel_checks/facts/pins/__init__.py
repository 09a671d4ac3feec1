"""Requirements that could replace torch, the guard against it, and planned changes."""
