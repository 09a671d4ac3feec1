"""The libraries of Windows in a wheel: what each needs."""
