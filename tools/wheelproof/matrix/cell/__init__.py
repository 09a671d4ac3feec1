"""One cell: its steps in a process, from resolving its packages to running its command."""
