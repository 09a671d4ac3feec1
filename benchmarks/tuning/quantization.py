"""Candidates for faster configurations of the quantisation kernels: ``(speed or "" for all, candidate)``.

Bytes under way for each multiprocessor are decisive; they come from many small programs. A few persistent programs that
prefetch the next rows were measured, too, and none was the fastest.
"""

from __future__ import annotations

from kernels_smoke.quantization import (
    dynamic_per_token_scaled_fp8_quant,
    per_token_group_fp8_quant,
    rms_norm_dynamic_per_token_quant,
    rms_norm_per_block_quant,
    silu_and_mul_dynamic_per_token_quant,
    silu_and_mul_per_block_quant,
)
from kernels_smoke.quantization.layout import Configuration

# One row or several at once.
ROWS = [
    Configuration(warps=warps, tile=tile, vector=vector, eviction=eviction)
    for warps, tile in ((4, 1), (8, 1), (16, 1), (8, 2))
    for vector in (8, 16)
    for eviction in ("", "evict_first")
]
# Groups of 128: 8 are 1024 elements.
GROUPS = [
    Configuration(warps=warps, tile=tile, vector=vector, eviction=eviction)
    for warps, tile in ((4, 16), (4, 32), (8, 16), (8, 32), (8, 64), (2, 8))
    for vector in (8, 16)
    for eviction in ("", "evict_first")
]
# Rows of two times 12288: one of them is 48 KB; a multiprocessor has 227 KB.
SWIGLU_ROWS = [
    Configuration(warps=warps, vector=vector, eviction=eviction)
    for warps in (4, 8, 16, 32)
    for vector in (8, 16)
    for eviction in ("", "evict_first")
]


def _anywhere(present: Configuration, others: list[Configuration]) -> list[tuple[str, Configuration]]:
    """The present configuration first, then the others, for all speeds of a kernel."""
    return [("", candidate) for candidate in dict.fromkeys([present, *others])]


CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "dynamic_per_token_scaled_fp8_quant": _anywhere(dynamic_per_token_scaled_fp8_quant.configure(4096), ROWS),
    "rms_norm_dynamic_per_token_quant": _anywhere(rms_norm_dynamic_per_token_quant.configure(16384, 4096), ROWS),
    "rms_norm_per_block_quant": _anywhere(rms_norm_per_block_quant.configure(16384, 4096), ROWS),
    "per_token_group_fp8_quant": _anywhere(per_token_group_fp8_quant.configure(128, 16384 * 4096), GROUPS),
    "silu_and_mul_per_block_quant": _anywhere(silu_and_mul_per_block_quant.configure(128, 16384 * 12288), GROUPS),
    "silu_and_mul_dynamic_per_token_quant": _anywhere(
        silu_and_mul_dynamic_per_token_quant.configure(12288), SWIGLU_ROWS
    ),
}
