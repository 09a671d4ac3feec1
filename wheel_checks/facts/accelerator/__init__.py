"""Which accelerator a wheel is built for, and the signals that say so."""
