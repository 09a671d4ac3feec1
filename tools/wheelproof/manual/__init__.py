"""What the parsers of all commands say, as facts, and what is made of it: shell completions and the manual page."""
