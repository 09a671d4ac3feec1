"""Matrix products of scaled fp8 operands. See README.md for formulas, sources and figures."""
