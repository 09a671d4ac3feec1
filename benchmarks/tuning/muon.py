"""Layouts to measure for Newton-Schulz: for each speed, the present choice first."""

from __future__ import annotations

from kernels_smoke.muon.newton_schulz import Configuration, configure
from kernels_smoke.muon.product import Tiles

PRESENT = configure(1, 4096, 4096, described=True)

_SYMMETRIC = [
    # All tiles by one program for each multiprocessor: the next tile's operands are loaded while this one is stored.
    Tiles(128, 128, 64, 1, 8, 5, programs=1),
    Tiles(128, 128, 64, 1, 8, 3, programs=1),
    Tiles(128, 128, 64, 1, 4, 4, programs=1),
    # One program for each tile, two at a time on a multiprocessor: one multiplies while the other stores.
    Tiles(128, 128, 64, 1, 8, 2),
    Tiles(128, 128, 64, 1, 4, 2),
    Tiles(128, 128, 32, 1, 8, 5),
]
_UPDATE = [
    Tiles(128, 256, 64, 16, 8, 3, halves=2, programs=1),
    Tiles(256, 128, 64, 8, 8, 3, halves=2, programs=1),
    Tiles(128, 256, 64, 8, 8, 3, halves=2),
    Tiles(128, 256, 64, 8, 8, 3),
    Tiles(128, 128, 64, 8, 8, 2),
]

# Both kernels of a step are timed together: each list is tried next to the present choice of the other.
CANDIDATES: dict[str, list[tuple[str, Configuration]]] = {
    "newton_schulz": [
        ("", PRESENT),
        *(("", Configuration(symmetric, PRESENT.update)) for symmetric in _SYMMETRIC),
        *(("", Configuration(PRESENT.symmetric, update)) for update in _UPDATE),
    ],
    # Its symmetric products are a chain on Hopper, which has one layout.
    "gram_newton_schulz": [("", Configuration(PRESENT.symmetric, update)) for update in (PRESENT.update, *_UPDATE)],
}
