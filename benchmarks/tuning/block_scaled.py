"""Layouts to try for the block-scaled product on GPUs that scale no blocks in hardware, for each speed."""

from __future__ import annotations

from kernels_smoke.block_scaled.block_scaled_mm import Configuration

_OPERANDS = [  # rows and bytes of a row converted by one program, and its warps
    *((1, 1024, 4), (2, 1024, 4), (4, 1024, 4), (4, 1024, 8), (8, 512, 4), (2, 2048, 8), (1, 512, 2), (4, 512, 4)),
]
_WEIGHTS = [  # block_n, block_k in bytes, warps, stages, splits
    *((64, 128, 4, 3, 1), (64, 128, 4, 3, 2), (64, 128, 4, 4, 2), (64, 128, 4, 3, 4), (64, 64, 4, 5, 2)),
    *((64, 256, 4, 2, 2), (64, 256, 4, 3, 1), (128, 128, 8, 3, 2), (128, 128, 8, 3, 4), (128, 256, 8, 2, 2)),
]

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "block_scaled_mm": [
        *(
            (f"{form}, 4096 x 8192, K 4096", Configuration(rows, 0, width, 1, warps, 1, emulated="operands"))
            for form in ("mxfp8", "mxfp4", "nvfp4")
            for rows, width, warps in _OPERANDS
        ),
        *(
            (
                "nvfp4, 16 x 16384, K 8192",
                Configuration(16, n, width, 1, warps, stages, emulated="weights", splits=splits),
            )
            for n, width, warps, stages, splits in _WEIGHTS
        ),
    ],
}
