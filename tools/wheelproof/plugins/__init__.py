"""Plug-ins: rules, formats and probes of other packages, found by their entry points and run in a supervised child."""
