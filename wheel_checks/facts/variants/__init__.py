"""Wheel variants (PEP 825): claims, documents, and machines as people describe them."""
