"""Layouts to try for the decoding of latent attention, for each speed; the present choice on an H200 first."""

from __future__ import annotations

from kernels_smoke.mla.mla_decode import Configuration

_FEW_HEADS = [  # tile, warps, stages, fill, describe
    *((64, 8, 3, 1, False), (64, 8, 2, 2, False), (64, 8, 2, 1, True), (64, 4, 2, 1, False), (64, 4, 3, 1, False)),
    *((32, 4, 3, 1, False), (32, 4, 4, 1, False), (32, 4, 3, 4, False), (32, 8, 4, 1, True), (16, 4, 4, 1, False)),
]
_MANY_HEADS = [  # block_h, tile, warps, stages, describe
    *((64, 64, 8, 2, False), (64, 64, 8, 2, True), (64, 64, 8, 1, True), (64, 32, 8, 3, True), (64, 32, 8, 4, True)),
    *((64, 32, 8, 3, False), (32, 64, 8, 2, True)),
]

_SPECIALIZED = Configuration(64, 64, warps=8, stages=2, specialized=True)

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "mla_decode": [
        ("64 x 4096, 128 heads", _SPECIALIZED),
        *(
            (speed, Configuration(16, tile, warps, stages, fill, describe))
            for speed in ("128 x 4096, 16 heads", "1 x 131072, 16 heads")
            for tile, warps, stages, fill, describe in _FEW_HEADS
        ),
        *((speed, _SPECIALIZED) for speed in ("128 x 4096, 16 heads", "1 x 131072, 16 heads")),
        *(
            ("64 x 4096, 128 heads", Configuration(block_h, tile, warps, stages, describe=describe))
            for block_h, tile, warps, stages, describe in _MANY_HEADS
        ),
    ],
}
