"""The probes: each reads one section of the facts, from the files below a root folder or from a child process."""
