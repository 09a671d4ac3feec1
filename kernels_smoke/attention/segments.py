"""The segments of a sequence that several programs attend to, and the kernel that merges their results."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def _tiles_of_a_segment(positions, segments, TILE: tl.constexpr):
    """How many tiles each segment of a sequence has, but the last, which has the rest: equal parts, and no fraction."""
    return max(tl.cdiv(tl.cdiv(positions, TILE), segments), 1)


@triton.jit
def _merge_kernel(
    partial, partial_maximum, partial_total, cumulative_query_lengths, sequence_lengths, out, heads, capacity,
    segments, out_stride, out_head_stride,
    QUERIES: tl.constexpr, TILE: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_SEGMENTS: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One program merges the segments of one head of one short sequence, token by token.
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    start = tl.load(cumulative_query_lengths + sequence)  # [1]
    queries = tl.load(cumulative_query_lengths + sequence + 1) - start  # [1]
    end = max(min(tl.load(sequence_lengths + sequence), capacity), 0)  # [1]
    tiles = tl.cdiv(end, TILE)
    share = _tiles_of_a_segment(end, segments, TILE)
    if (queries <= QUERIES) & (share < tiles):
        offs_d = tl.arange(0, BLOCK_D)
        segment = tl.arange(0, BLOCK_SEGMENTS)
        row_mask = segment < tl.cdiv(tiles, share)
        for token in range(queries):
            slot = ((sequence * QUERIES + token).to(tl.int64) * heads + head) * segments + segment
            mask = row_mask[:, None] & (offs_d < HEAD_DIM)[None, :]
            # [BLOCK_SEGMENTS, BLOCK_D]
            o_s = tl.load(partial + slot[:, None] * HEAD_DIM + offs_d[None, :], mask=mask, other=0.0)
            m_s = tl.load(partial_maximum + slot, mask=row_mask, other=float("-inf"))  # [BLOCK_SEGMENTS]
            l_s = tl.load(partial_total + slot, mask=row_mask, other=0.0)  # [BLOCK_SEGMENTS]
            m_new = tl.max(m_s, axis=0)
            alpha = tl.exp2(m_s - tl.where(m_new == float("-inf"), 0.0, m_new))
            l_i = tl.sum(l_s * alpha, axis=0)
            o = tl.sum(o_s * alpha[:, None], axis=0) / tl.where(l_i > 0.0, l_i, 1.0)  # [BLOCK_D]
            offset = (start + token).to(tl.int64) * out_stride + head * out_head_stride
            tl.store(out + offset + offs_d, o.to(out.dtype.element_ty), mask=offs_d < HEAD_DIM)
