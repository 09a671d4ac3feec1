"""The gated delta rule. See README.md for formulas, sources and figures."""
