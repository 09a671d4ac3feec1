"""The application behind ``wheelproof stack``: resolve requirements for a target, and judge what that gives."""
