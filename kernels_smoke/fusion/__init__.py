"""Operations that are worth a kernel because they are fused. See README.md for formulas, sources and figures."""
