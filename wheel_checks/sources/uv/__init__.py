"""uv as a resolver, and its explanation when there is no solution."""
