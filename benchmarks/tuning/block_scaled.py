"""Layouts to try for the block-scaled product, for each speed."""

from __future__ import annotations

from kernels_smoke.block_scaled.block_scaled_mm import Configuration

_TILES = [  # block_m, block_n, block_k in bytes, warps, stages; the choices for mxfp8, mxfp4 and nvfp4 first
    *((128, 256, 128, 8, 3), (128, 256, 32, 8, 3), (128, 128, 16, 8, 4), (128, 128, 128, 8, 3), (128, 128, 64, 8, 3)),
    *((128, 128, 32, 4, 3), (256, 128, 32, 8, 3), (64, 128, 32, 4, 3), (64, 128, 64, 4, 3), (128, 256, 64, 8, 3)),
]
_FEW_ROWS = [  # block_n, block_k in bytes, warps, stages
    *(
        (64, 64, 4, 3),
        (64, 64, 4, 4),
        (64, 32, 4, 4),
        (64, 32, 4, 6),
        (64, 16, 4, 6),
        (64, 64, 8, 4),
        (64, 128, 8, 3),
        (128, 32, 8, 4),
    ),
]

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "block_scaled_mm": [
        *(
            (f"{form}, 4096 x 8192, K 4096", Configuration(m, n, width, 8, warps, stages, emulated=emulated))
            for form in ("mxfp8", "mxfp4", "nvfp4")
            for emulated in ((True,) if form == "nvfp4" else (True, False))  # see README.md
            for m, n, width, warps, stages in _TILES
        ),
        *(
            (
                "nvfp4, 16 x 16384, K 8192",
                Configuration(16, n, width, 1, warps, stages, swapped=True, emulated=True),
            )
            for n, width, warps, stages in _FEW_ROWS
        ),
    ],
}
