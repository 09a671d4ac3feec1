"""Layouts to try for the norms, for each speed; the first is the present choice."""

from __future__ import annotations

from kernels_smoke.norm.fused_add_rms_norm import Configuration, configure

WIDTH = 4096  # of the speed's rows

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "fused_add_rms_norm": [
        ("", configure(WIDTH)),
        *(
            ("", Configuration(block=WIDTH, rows=rows, warps=warps, eviction=eviction))
            for rows, warps in ((1, 4), (1, 8), (1, 16), (2, 8), (2, 16), (4, 16))
            for eviction in ("", "evict_first")
        ),
    ],
}
