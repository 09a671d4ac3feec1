"""Quantisation to fp8 (e4m3), alone and fused with what comes before it. See README.md for formulas and figures."""
