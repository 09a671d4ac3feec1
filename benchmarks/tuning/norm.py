"""Layouts to try for the norms, for each speed; the first is the present choice."""

from __future__ import annotations

from kernels_smoke.launching.checks import WholeRows, whole_rows

WIDTH = 4096  # of the speed's rows

CANDIDATES: dict[str, list[tuple[str, WholeRows]]] = {
    "fused_add_rms_norm": [
        ("", whole_rows(WIDTH)),
        *(
            ("", WholeRows(block=WIDTH, rows=rows, warps=warps, eviction=eviction))
            for rows, warps in ((1, 4), (1, 8), (1, 16), (2, 8), (2, 16), (4, 16))
            for eviction in ("", "evict_first")
        ),
    ],
}
