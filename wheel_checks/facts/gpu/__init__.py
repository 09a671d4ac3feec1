"""GPU code: which members hold some, for which GPUs, and which GPUs run it."""
