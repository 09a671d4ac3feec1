"""Layouts to measure for the kernels of DuaLip: for each speed, the present choice first."""

from __future__ import annotations

from kernels_smoke.dualip import simplex_projection, sparse_product
from kernels_smoke.dualip.segments import Configuration

COLUMNS = "A^T y: 1,000,000 columns of 0 to 32"
ROWS = "A x: 10,000 rows of 1,500 to 1,700"

_SHORT = [
    Configuration(32, lanes, segments, warps, eviction)
    for lanes, segments, warps in (
        *((8, 16, 4), (8, 32, 4), (8, 64, 4), (8, 8, 2), (8, 64, 8)),
        *((4, 32, 4), (16, 8, 4), (16, 32, 4)),
        *((2, 16, 1), (4, 8, 1), (4, 16, 1), (8, 8, 1), (2, 32, 2)),
    )
    for eviction in ("", "evict_first")
]

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "simplex_projection": [("", simplex_projection.configure(32)), *(("", each) for each in _SHORT)],
    "sparse_product": [
        (COLUMNS, sparse_product.configure(32)),
        *((COLUMNS, each) for each in _SHORT),
        (ROWS, sparse_product.configure(2048)),
        *(
            (ROWS, Configuration(length, lanes, segments, warps, eviction))
            for length, lanes, segments, warps in (
                *((2048, 256, 1, 8), (2048, 128, 1, 4), (1024, 256, 1, 8), (1024, 128, 1, 4), (512, 128, 1, 4)),
                *((256, 32, 4, 4), (512, 32, 4, 4)),
            )
            for eviction in ("evict_first", "")
        ),
    ],
}
