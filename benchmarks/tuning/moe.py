"""Layouts to try for the grouped products: for each kernel (speed, layout), the present choice on an H200 first."""

from __future__ import annotations

from kernels_smoke.moe.grouped_tiles import Configuration

LARGE, FEW = "16384 rows, 32 x 4096 x 2048", "256 rows, 32 x 4096 x 2048"
SPECIALIZED = ((8, 4), (4, 4), (16, 4), (8, 3))  # group_m, stages
TILES = [  # block_m, block_n, group_m, warps, stages
    *((128, 256, 16, 8, 4), (128, 256, 8, 8, 4), (128, 256, 8, 8, 3), (256, 128, 8, 8, 4), (64, 256, 16, 8, 4)),
    *((128, 128, 8, 4, 3), (128, 128, 4, 4, 3), (128, 128, 8, 4, 4), (128, 128, 8, 8, 5)),
]
FEW_ROWS = [  # block_m, block_n, block_k, warps, stages
    *((32, 64, 128, 4, 3), (32, 64, 128, 4, 4), (16, 64, 128, 4, 3), (16, 64, 128, 4, 4), (16, 64, 256, 4, 2)),
    *((16, 128, 128, 4, 3), (16, 128, 64, 4, 5), (16, 64, 64, 4, 6), (32, 128, 128, 4, 3)),
]
BY_BLOCKS = [  # block_m, block_n, group_m, warps, stages
    *((64, 128, 8, 4, 3), (64, 128, 8, 4, 4), (64, 128, 16, 4, 4), (64, 128, 8, 8, 4), (128, 128, 8, 8, 4)),
    *((128, 128, 8, 8, 3), (128, 64, 8, 4, 3), (128, 64, 8, 4, 4), (64, 64, 8, 4, 4)),
]
FEW_BY_BLOCKS = [  # block_m, block_n, warps, stages
    *((16, 64, 4, 4), (16, 64, 4, 6), (16, 64, 4, 8), (16, 128, 4, 4), (16, 128, 4, 6), (16, 128, 8, 4)),
    *((32, 64, 4, 4), (32, 128, 4, 4)),
]

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "grouped_mm": [
        *((LARGE, Configuration(128, 256, 64, group, 4, stages, specialized=True)) for group, stages in SPECIALIZED),
        *((LARGE, Configuration(m, n, 64, group, warps, stages)) for m, n, group, warps, stages in TILES),
        *((FEW, Configuration(m, n, k, 1, warps, stages, swapped=True)) for m, n, k, warps, stages in FEW_ROWS),
    ],
    "grouped_mm_blockwise": [
        *((LARGE, Configuration(128, 256, 128, group, 4, stages, specialized=True)) for group, stages in SPECIALIZED),
        *((LARGE, Configuration(m, n, 128, group, warps, stages)) for m, n, group, warps, stages in BY_BLOCKS),
        *((FEW, Configuration(m, n, 128, 1, warps, stages, swapped=True)) for m, n, warps, stages in FEW_BY_BLOCKS),
    ],
}
