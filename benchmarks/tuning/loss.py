"""Layouts to try for the losses; the first is the present choice."""

from __future__ import annotations

from kernels_smoke.loss.cross_entropy import Configuration

CANDIDATES = {
    "cross_entropy": [
        ("", Configuration(block=block, warps=warps, hints=hints))
        for block, warps in ((16384, 32), (32768, 32), (8192, 16))
        for hints in (True, False)
    ],
}
