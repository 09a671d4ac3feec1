"""The kernels of a dual-ascent solver for linear programs. See README.md for formulas, sources and figures."""
