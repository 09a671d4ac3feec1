"""Layouts to try for the rotary embeddings, for each speed; the first is the present choice."""

from __future__ import annotations

from kernels_smoke.rotary import fused_qk_norm_rope, fused_qk_rmsnorm_rope_gate
from kernels_smoke.rotary.heads import Configuration

HEAD_DIM = 256  # of the speeds' heads

LAYOUTS = [
    ("", Configuration(heads=heads, warps=warps, eviction=eviction))
    for heads, warps in (
        (1, 1),
        (2, 1),
        (4, 1),
        (8, 1),
        (4, 2),
        (8, 2),
        (4, 4),
        (8, 4),
        (16, 4),
        (8, 8),
        (16, 8),
        (32, 8),
    )
    for eviction in ("", "evict_first")
]

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "fused_qk_norm_rope": [("", fused_qk_norm_rope.configure(HEAD_DIM)), *LAYOUTS],
    "fused_qk_rmsnorm_rope_gate": [("", fused_qk_rmsnorm_rope_gate.configure(HEAD_DIM)), *LAYOUTS],
}
