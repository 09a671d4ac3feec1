"""Layouts to try for the gated delta rule: for each kernel (speed, layout), the present choice first."""

from __future__ import annotations

from typing import Any

from kernels_smoke.delta_net.causal_conv1d import Configuration as Convolution
from kernels_smoke.delta_net.causal_conv1d_update import Configuration as Update
from kernels_smoke.delta_net.gated_delta_rule_chunk import Configuration as Chunk
from kernels_smoke.delta_net.gated_delta_rule_decode import Configuration as Decode
from kernels_smoke.launching.checks import WholeRows

_CHUNK = [
    # 64 columns: in four warps the state is the left operand of Hopper's products.
    *(
        Chunk(chunk=chunk, block_v=64, warps=4, stages=stages, segments=segments)
        for chunk, stages in ((32, 3), (32, 4), (64, 3))
        for segments in (8, 1)
    ),
    # 128 columns: half as much traffic, and half as many programs.
    Chunk(chunk=32, block_v=128, warps=8, stages=3),
    # 32 columns: more programs, with the products of older GPUs.
    Chunk(chunk=32, block_v=32, warps=4, stages=3),
]

_DECODE = [
    Decode(block_v=32, warps=1),
    Decode(block_v=32, warps=1, eviction="evict_first"),
    Decode(block_v=8, warps=1),
    Decode(block_v=16, warps=1),
    Decode(block_v=16, warps=2),
    Decode(block_v=32, warps=2),
    Decode(block_v=32, warps=4),
    Decode(block_v=64, warps=2),
    Decode(block_v=64, warps=4),
    Decode(block_v=64, warps=8),
    Decode(block_v=128, warps=4),
    Decode(block_v=128, warps=8),
]

_CONVOLUTION = [
    Convolution(block_t, block_c, warps, rows)
    for block_t, block_c, warps in ((32, 512, 4), (32, 1024, 4), (16, 512, 4), (64, 512, 4), (32, 512, 2), (32, 256, 2))
    for rows in (8, 4)
]

_UPDATE = [Update(block_c, warps) for block_c, warps in ((512, 4), (1024, 4), (1024, 8), (512, 2), (256, 2))]

CANDIDATES: dict[str, list[tuple[str, Any]]] = {
    "gated_delta_rule_chunk": [("", layout) for layout in _CHUNK],
    "gated_delta_rule_decode": [("", layout) for layout in _DECODE],
    "causal_conv1d": [("", layout) for layout in _CONVOLUTION],
    "causal_conv1d_update": [("", layout) for layout in _UPDATE],
    "delta_rule_gates": [
        ("", WholeRows(block=32, rows=rows, warps=warps))
        for rows, warps in ((64, 4), (32, 2), (32, 4), (128, 4), (16, 1))
    ],
}
