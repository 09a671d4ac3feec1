"""Layouts to try for the gated delta rule: for each kernel (speed, layout), the present choice first."""

from __future__ import annotations

from kernels_smoke.delta_net.gated_delta_rule_chunk import Configuration as Chunk
from kernels_smoke.delta_net.gated_delta_rule_decode import Configuration as Decode

_CHUNK = [
    # 64 columns: four warps hold the state as the left operand of Hopper's products.
    Chunk(chunk=64, block_v=64, warps=4, stages=3, prepare_warps=4),
    Chunk(chunk=64, block_v=64, warps=4, stages=2, prepare_warps=4),
    Chunk(chunk=64, block_v=64, warps=4, stages=3, prepare_warps=8),
    Chunk(chunk=64, block_v=64, warps=4, stages=3, prepare_warps=2),
    # 128 columns: half as much traffic, and half as many programs.
    Chunk(chunk=64, block_v=128, warps=8, stages=2, prepare_warps=4),
    Chunk(chunk=64, block_v=128, warps=8, stages=3, prepare_warps=4),
    # 32 and 16 columns: more programs, whose products are those of older GPUs.
    Chunk(chunk=64, block_v=32, warps=4, stages=3, prepare_warps=4),
    Chunk(chunk=64, block_v=32, warps=4, stages=2, prepare_warps=4),
    Chunk(chunk=64, block_v=16, warps=4, stages=2, prepare_warps=4),
    # Chunks of 32: a quarter of the work to prepare one, twice as many steps.
    Chunk(chunk=32, block_v=64, warps=4, stages=3, prepare_warps=4),
    Chunk(chunk=32, block_v=64, warps=4, stages=4, prepare_warps=2),
    Chunk(chunk=32, block_v=32, warps=4, stages=3, prepare_warps=4),
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

CANDIDATES: dict[str, list[tuple[str, Chunk] | tuple[str, Decode]]] = {
    "gated_delta_rule_chunk": [("", layout) for layout in _CHUNK],
    "gated_delta_rule_decode": [("", layout) for layout in _DECODE],
}
