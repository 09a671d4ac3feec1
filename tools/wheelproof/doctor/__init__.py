"""The doctor: probes read the facts of a host, rules judge them, and a diagnosis names the one root cause."""
