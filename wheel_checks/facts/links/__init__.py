"""The link closure: which library provides what another one needs."""
