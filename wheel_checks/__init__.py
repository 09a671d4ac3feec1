"""Facts and rules about wheels, the result model and its renderers.

Nothing in here knows the command line; ``wheelproof`` builds on this package, never the other way round.
"""
