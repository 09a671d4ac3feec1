"""A run: its jobs, which GPUs they are for, and the order in which they are done. The parent's side, without torch."""
