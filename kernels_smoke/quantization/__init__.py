"""Quantisation to fp8 (e4m3), alone and fused with the operation before it. See README.md for formulas and figures."""
