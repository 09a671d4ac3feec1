"""The Muon optimizer and its orthogonalisation. See README.md for formulas, sources and figures."""
