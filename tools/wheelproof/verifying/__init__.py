"""The application behind ``wheelproof verify``: what to judge, reading it, judging it."""
