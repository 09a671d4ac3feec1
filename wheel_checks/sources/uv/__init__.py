"""uv as a resolver, and what it says when there is no solution."""
