"""The application of ``wheelproof stack``: resolve requirements for a target, and judge the result."""
