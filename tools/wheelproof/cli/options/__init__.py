"""Options that commands share, and what a tree may do to them."""
