"""Layouts to try for paged attention, for each speed; the first of each is the present choice on an H200."""

from __future__ import annotations

from kernels_smoke.attention.layout import Configuration, Layout
from kernels_smoke.attention.paged_attention_decode import Configuration as DecodeConfiguration

HEADS = 4  # query heads that share a head of keys, in every speed

_PROMPTS = [
    # In Gluon, on Hopper: its own warps, stages and programs.
    Configuration(Layout(queries=128 // HEADS, tile=128, warps=8, stages=3), heads=HEADS, specialized=True),
    *(
        Configuration(Layout(rows // HEADS, tile, warps, stages), programs=programs, heads=HEADS)
        for rows, tile, warps, stages, programs in (
            (128, 64, 8, 3, 0),  # one program on a multiprocessor: keys are read least often
            (128, 64, 8, 2, 0),
            (128, 64, 8, 4, 0),
            (128, 128, 8, 2, 0),  # rescales half as often
            (128, 128, 8, 3, 0),
            (128, 32, 8, 4, 0),
            (64, 64, 4, 2, 0),  # two programs: one has its softmax while the other multiplies
            (64, 64, 4, 3, 0),
            (64, 128, 4, 2, 0),
            (64, 32, 4, 4, 0),
            (128, 64, 8, 3, 1),  # a program for each multiprocessor works through all blocks
            (64, 64, 4, 3, 2),
        )
    ),
]


def _decoding(*candidates: tuple[int, int, int, int]) -> list[Configuration]:
    """Configurations of (segments, tile, warps, stages)."""
    return [
        Configuration(None, Layout(queries=4, tile=tile, warps=warps, stages=stages), segments, heads=HEADS)
        for segments, tile, warps, stages in candidates
    ]


_ONE_SEQUENCE = _decoding(
    *((33, 64, 4, stages) for stages in (3, 2, 4)),
    *((segments, 64, 4, 3) for segments in (16, 49, 64)),
    *((33, 64, 2, 3), (33, 64, 8, 3), (33, 32, 4, 4), (49, 32, 4, 4), (33, 128, 8, 2), (16, 128, 8, 3)),
)
_SEQUENCES_64 = _decoding(
    *((1, 64, 4, stages) for stages in (3, 2, 4)),
    *((segments, 64, 4, 3) for segments in (2, 3, 4)),
    *((1, 64, 2, 3), (1, 64, 8, 3), (1, 32, 4, 4), (1, 32, 2, 4), (1, 128, 8, 2), (2, 128, 8, 2)),
)
_SEQUENCES_128 = _decoding(
    *((1, 64, 4, stages) for stages in (3, 2, 4)),
    *((segments, 64, 4, 3) for segments in (2, 4)),
    *((1, 64, 2, 3), (1, 64, 8, 3), (1, 32, 4, 4), (1, 128, 8, 2), (2, 128, 8, 2)),
)

_DECODE = [  # tile, warps, stages, fill, rows
    *((64, 2, 3, 2, 16), (64, 2, 2, 2, 16), (64, 2, 4, 2, 16), (64, 4, 3, 2, 16), (64, 4, 1, 2, 16), (64, 8, 3, 2, 16)),
    *((128, 4, 3, 2, 16), (32, 4, 3, 2, 16), (32, 2, 4, 2, 16), (32, 4, 3, 4, 16), (16, 4, 4, 2, 16)),
    *((64, 4, 3, 2, 64), (128, 4, 3, 2, 64), (32, 4, 4, 2, 64)),
]

CANDIDATES: dict[str, list[tuple[str, Configuration | DecodeConfiguration]]] = {
    "paged_attention": [
        *(("prompt of 4096, cuDNN", configuration) for configuration in _PROMPTS),
        *(("prompt of 16384, cuDNN", configuration) for configuration in _PROMPTS),
        *(("decoding, 1 x 32768", configuration) for configuration in _ONE_SEQUENCE),
        *(("decoding, 64 x 2048", configuration) for configuration in _SEQUENCES_64),
        *(("decoding, 128 x 8192", configuration) for configuration in _SEQUENCES_128),
    ],
    "paged_attention_decode": [
        (speed, DecodeConfiguration(*candidate))
        for speed in ("fp8 cache, 64 x 4096", "window of 1024, sinks, soft cap, 64 x 2048")
        for candidate in _DECODE
    ],
}
