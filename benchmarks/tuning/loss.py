"""Layouts to try for the losses; the first is the present choice."""

from __future__ import annotations

from kernels_smoke.loss.cross_entropy import Configuration

CANDIDATES = {
    "cross_entropy": [
        ("", Configuration(block=block, warps=warps))
        for block, warps in (
            *((16384, 16), (16384, 32), (16384, 8), (8192, 16), (8192, 8), (8192, 4), (4096, 8), (4096, 4)),
            *((32768, 16), (32768, 32)),
        )
    ],
}
