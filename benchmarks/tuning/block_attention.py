"""Layouts to measure for attention within blocks; see "Layouts" in the family's README."""

from __future__ import annotations

from kernels_smoke.block_attention.blocks import Configuration

_FORWARD = [
    # A program for each tile: the more fit a multiprocessor, the more loads are under way.
    Configuration(warps=4),
    Configuration(warps=8),
    Configuration(warps=2),
    Configuration(warps=4, registers=96),
    Configuration(warps=8, registers=64),
]

_BACKWARD = [
    Configuration(warps=8, stages=5, programs=1),
    Configuration(warps=4, stages=5, programs=1),
    Configuration(warps=8, registers=128),
    Configuration(warps=8),
    Configuration(warps=4),
    Configuration(warps=4, registers=168),
    Configuration(warps=8, programs=2, registers=128),
    Configuration(warps=4, programs=2),
    Configuration(warps=8, stages=3, programs=1),
    Configuration(warps=4, stages=3, programs=1),
    Configuration(warps=16),
]

CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "block_diagonal_attention": [("", choice) for choice in _FORWARD],
    "block_diagonal_attention_backward": [("", choice) for choice in _BACKWARD],
}
