"""Records of cells that were run: what they contain, where they are stored, and the facts that rules judge."""
