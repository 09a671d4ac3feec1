"""Layouts to measure for the matrix products: for each kernel (speed, layout), the present choice first."""

from __future__ import annotations

from kernels_smoke.matmul.scaled_mm_blockwise import Configuration as Blockwise
from kernels_smoke.matmul.tiles import Configuration as Rowwise

LARGE = "8192 x 24576, K 4096"
FEW_ROWS = "16 x 24576, K 4096"

_LARGE = [
    # All tiles by one program for each multiprocessor: the next tile's operands are loaded while this one is stored.
    Rowwise(128, 256, 128, 8, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(128, 256, 128, 8, 8, 3, halves=2, programs=1, describe_out=True),
    Rowwise(128, 256, 128, 4, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(128, 256, 128, 16, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(128, 256, 128, 32, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(128, 256, 128, 64, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(128, 256, 128, 8, 8, 4, programs=1),
    Rowwise(128, 256, 128, 8, 8, 3, programs=1, describe_out=True),
    Rowwise(128, 256, 64, 8, 8, 7, halves=2, programs=1, describe_out=True),
    Rowwise(256, 128, 128, 8, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(256, 128, 128, 4, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(256, 128, 128, 16, 8, 4, halves=2, programs=1, describe_out=True),
    Rowwise(256, 128, 128, 8, 8, 3, halves=2, programs=1, describe_out=True),
    Rowwise(128, 128, 128, 8, 8, 6, programs=1, describe_out=True),
    Rowwise(128, 128, 128, 8, 4, 3, halves=2, programs=2),
    # One program for each tile.
    Rowwise(128, 256, 128, 8, 8, 4, halves=2, describe_out=True),
    Rowwise(128, 256, 128, 16, 8, 4, halves=2, describe_out=True),
    Rowwise(128, 256, 128, 8, 8, 4, halves=2),
    Rowwise(128, 256, 128, 8, 8, 3, describe_out=True),
    Rowwise(128, 256, 128, 8, 8, 4),
    Rowwise(256, 128, 128, 8, 8, 4, halves=2, describe_out=True),
    Rowwise(256, 128, 128, 16, 8, 4, halves=2, describe_out=True),
    Rowwise(128, 128, 128, 8, 4, 3, halves=2),
    Rowwise(128, 128, 128, 16, 4, 3, halves=2, describe_out=True),
]

_FEW_ROWS = [
    Rowwise(16, 64, 256, 1, 4, 3, swapped=True),
    Rowwise(16, 64, 256, 1, 4, 2, swapped=True),
    Rowwise(16, 64, 256, 1, 4, 4, swapped=True),
    Rowwise(16, 64, 256, 1, 4, 5, swapped=True),
    Rowwise(16, 64, 128, 1, 4, 4, swapped=True),
    Rowwise(16, 64, 128, 1, 4, 6, swapped=True),
    Rowwise(16, 64, 128, 1, 4, 8, swapped=True),
    Rowwise(16, 64, 512, 1, 4, 2, swapped=True),
    Rowwise(16, 64, 512, 1, 4, 3, swapped=True),
    Rowwise(16, 128, 128, 1, 4, 4, swapped=True),
    Rowwise(16, 128, 128, 1, 8, 6, swapped=True),
    Rowwise(16, 128, 256, 1, 4, 3, swapped=True),
    Rowwise(16, 128, 256, 1, 8, 3, swapped=True),
    Rowwise(16, 64, 256, 1, 4, 3, swapped=True, programs=3),
    Rowwise(16, 64, 256, 1, 4, 4, swapped=True, programs=2),
    Rowwise(16, 64, 256, 1, 4, 8, swapped=True, programs=1),
    Rowwise(16, 64, 128, 1, 4, 6, swapped=True, programs=4),
    Rowwise(16, 32, 256, 1, 4, 3),
    Rowwise(16, 32, 256, 1, 4, 4),
    Rowwise(16, 32, 256, 1, 2, 4),
    Rowwise(16, 32, 512, 1, 4, 3),
    Rowwise(16, 64, 256, 1, 4, 3),
    Rowwise(16, 64, 256, 1, 4, 4),
    Rowwise(16, 64, 128, 1, 4, 5),
    Rowwise(16, 128, 128, 1, 4, 4),
    Rowwise(16, 128, 128, 1, 8, 4),
]

_BLOCKWISE = [
    # In Gluon, on Hopper: one warp loads, two warpgroups multiply.
    Blockwise(128, 256, 8, 4, 4, programs=1, specialized=True),
    Blockwise(128, 256, 4, 4, 4, programs=1, specialized=True),
    Blockwise(128, 256, 16, 4, 4, programs=1, specialized=True),
    Blockwise(128, 256, 64, 4, 4, programs=1, specialized=True),
    Blockwise(128, 256, 8, 4, 3, programs=1, specialized=True),
    Blockwise(128, 128, 4, 8, 4, programs=1, describe_out=True),
    Blockwise(128, 128, 8, 8, 4, programs=1, describe_out=True),
    Blockwise(128, 128, 2, 8, 4, programs=1, describe_out=True),
    Blockwise(128, 128, 8, 8, 3, programs=1, describe_out=True),
    Blockwise(128, 128, 8, 8, 5, programs=1, describe_out=True),
    Blockwise(128, 128, 16, 8, 4, programs=1, describe_out=True),
    Blockwise(128, 128, 32, 8, 4, programs=1, describe_out=True),
    Blockwise(128, 128, 8, 8, 6, programs=1),
    Blockwise(128, 128, 8, 16, 4, programs=1, describe_out=True),
    Blockwise(128, 128, 16, 16, 5, programs=1, describe_out=True),
    Blockwise(256, 64, 8, 8, 4, programs=1, describe_out=True),
    Blockwise(128, 128, 8, 8, 4),
    Blockwise(128, 128, 8, 8, 4, describe_out=True),
    Blockwise(128, 128, 16, 8, 3),
    Blockwise(128, 128, 8, 16, 4),
    # Several programs on a multiprocessor: one scales while another multiplies.
    Blockwise(64, 128, 16, 4, 3),
    Blockwise(64, 128, 8, 4, 3, describe_out=True),
    Blockwise(64, 128, 16, 4, 4, programs=2, describe_out=True),
    Blockwise(64, 128, 16, 4, 2, programs=3, describe_out=True),
    Blockwise(128, 64, 8, 4, 3),
    Blockwise(128, 64, 16, 4, 3, programs=2, describe_out=True),
    Blockwise(128, 64, 16, 8, 3, programs=2, describe_out=True),
]

CANDIDATES: dict[str, list[tuple[str, Rowwise | Blockwise]]] = {
    "scaled_mm": [*((LARGE, choice) for choice in _LARGE), *((FEW_ROWS, choice) for choice in _FEW_ROWS)],
    "scaled_mm_blockwise": [(LARGE, choice) for choice in _BLOCKWISE],
}
