"""Layouts to try for the fused operations, for each speed; the first is the present choice."""

from __future__ import annotations

from typing import Any

from kernels_smoke.fusion import mul_add_sigmoid, mul_sum_add, pointwise, sin_and_cos
from kernels_smoke.launching.checks import WholeRows, whole_rows
from kernels_smoke.matmul.tiles import Configuration as Tiles

GATE_WIDTH = 4096  # of the speed's rows
SUM_WIDTH = 16384

_MANY = "4096 x 12288, K 4096, SiLU"
_FEW = "normed, 16 x 12288, K 4096, SiLU"

CANDIDATES: dict[str, list[tuple[str, Any]]] = {
    "fused_gate_sigmoid_mul_add": [
        ("", whole_rows(GATE_WIDTH)),
        *(
            ("", WholeRows(block=GATE_WIDTH, rows=rows, warps=warps, eviction=eviction))
            for rows, warps in ((1, 4), (1, 8), (1, 16), (2, 8), (2, 16))
            for eviction in ("", "evict_first")
        ),
    ],
    "fused_linear": [
        *(
            (case, Tiles(m, n, k, group_m=8, warps=8, stages=stages, halves=2, programs=1, describe_out=True))
            for case, m, n, k, stages in (
                *(
                    (_MANY, 128, 256, 128, 3),
                    (_MANY, 128, 256, 128, 4),
                    (_MANY, 128, 128, 128, 4),
                    (_MANY, 256, 128, 128, 3),
                ),
            )
        ),
        *(
            (_FEW, Tiles(16, n, k, group_m=1, warps=warps, stages=stages, swapped=True))
            for n, k, warps, stages in (
                *(
                    (64, 256, 4, 3),
                    (64, 256, 4, 4),
                    (64, 512, 4, 3),
                    (64, 128, 4, 4),
                    (128, 256, 4, 3),
                    (64, 512, 8, 3),
                ),
                *((64, 256, 8, 4), (128, 128, 4, 4)),
            )
        ),
    ],
    "mul_add_sigmoid": [
        ("", mul_add_sigmoid.configure(2)),
        *(
            ("", pointwise.Configuration(block=block, warps=warps, eviction=eviction))
            for block, warps in ((1024, 4), (2048, 4), (2048, 8), (4096, 4), (4096, 8), (8192, 8), (8192, 16))
            for eviction in ("", "evict_first")
        ),
    ],
    "mul_sum_add": [
        ("", mul_sum_add.configure(SUM_WIDTH)),
        *(
            ("", mul_sum_add.Configuration(block=block, rows=1, warps=warps, stages=stages, eviction=eviction))
            for block, warps, stages in (
                *((2048, 4, 1), (2048, 4, 3), (4096, 4, 1), (4096, 8, 1), (4096, 8, 2), (4096, 8, 3)),
                *((8192, 8, 1), (8192, 16, 1), (8192, 8, 2), (16384, 16, 1), (16384, 32, 1)),
            )
            for eviction in ("", "evict_first")
        ),
    ],
    "sin_and_cos": [
        ("", sin_and_cos.configure()),
        *(
            ("", pointwise.Configuration(block=block, warps=warps, eviction=eviction))
            for block, warps in (
                *((128, 1), (256, 1), (512, 1), (512, 2), (512, 4), (1024, 2), (1024, 4), (1024, 8)),
                *((2048, 4), (2048, 8), (2048, 16), (4096, 8)),
            )
            for eviction in ("", "evict_first")
        ),
    ],
}
