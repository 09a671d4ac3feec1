"""Layouts to try for the k greatest of each row; the first of each speed is the present choice."""

from __future__ import annotations

from kernels_smoke.routing.topk_softmax import Configuration

EXPERTS, VOCABULARY = "65,536 tokens, 8 of 256 experts", "256 x 151,936, 50 of them"

CANDIDATES = {
    "topk_softmax": [
        *((EXPERTS, Configuration(rows, warps, eights=True)) for rows, warps in ((32, 4), (8, 1), (16, 1), (64, 4))),
        (EXPERTS, Configuration(rows=4, warps=1)),
        *(
            (VOCABULARY, Configuration(rows=1, warps=warps, group=group, piece=piece, select_warps=select))
            for group, piece, warps, select in (
                *((64, 4096, 4, 4), (64, 4096, 4, 2), (64, 4096, 4, 8), (64, 2048, 2, 4), (128, 8192, 8, 4)),
            )
        ),
    ],
}
