"""How a sequence of few query tokens is divided among programs, and the kernel that merges what they leave."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.attention.layout import LEAST_SEGMENT, MOST_SEGMENTS
from kernels_smoke.launch_plan import allocated, launch

UNBOUNDED = 2**31 - 1  # a window that holds every position


@triton.jit
def _tiles_seen(end, window, TILE: tl.constexpr):
    """The first tile of the last ``window`` positions before ``end``, and the first tile behind them."""
    return tl.maximum(end - window, 0) // TILE, tl.cdiv(end, TILE)


@triton.jit
def _share(tiles, segments):
    """How many of ``tiles`` each segment has, but the last, which has the rest: equal parts, and no fraction."""
    return tl.maximum(tl.cdiv(tiles, segments), 1)


@triton.jit
def _store(acc, m_i, l_i, target, room, maxima, totals, mask, row_mask, divided):
    """Store the rows of ``acc``: divided by ``l_i`` to ``target``, or as they are in one of several segments."""
    if divided:
        tl.store(room, acc, mask=mask)
        tl.store(maxima, m_i, mask=row_mask)
        tl.store(totals, l_i, mask=row_mask)
    else:
        l_i = tl.where(l_i > 0.0, l_i, 1.0)  # an empty sequence gives zero
        tl.store(target, (acc / l_i[:, None]).to(target.dtype.element_ty), mask=mask)


@triton.jit
def _merge_kernel(
    partial, partial_maximum, partial_total, cumulative_query_lengths, sequence_lengths, out, heads, capacity, segments,
    window, out_stride, out_head_stride,
    QUERIES: tl.constexpr, TILE: tl.constexpr, HEAD_DIM: tl.constexpr, BLOCK_D: tl.constexpr,
    BLOCK_SEGMENTS: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One program merges BLOCK_D columns of one head of one sequence, token by token.
    sequence = tl.program_id(0)
    head = tl.program_id(1)
    start = sequence
    queries = 1
    if cumulative_query_lengths is not None:
        start = tl.load(cumulative_query_lengths + sequence)  # [1]
        queries = tl.load(cumulative_query_lengths + sequence + 1) - start  # [1]
    end = max(min(tl.load(sequence_lengths + sequence), capacity), 0)  # [1]
    begin, behind = _tiles_seen(end, window, TILE)
    share = _share(behind - begin, segments)
    if (queries <= QUERIES) & (share < behind - begin):
        used = tl.cdiv(behind - begin, share)
        offs_d = tl.program_id(2) * BLOCK_D + tl.arange(0, BLOCK_D)
        segment = tl.arange(0, BLOCK_SEGMENTS)
        exists = segment < used
        mask = exists[:, None] & (offs_d < HEAD_DIM)[None, :]
        for token in range(queries):
            slot = ((sequence * QUERIES + token).to(tl.int64) * heads + head) * segments + segment
            # All loads before the first sum, which waits.
            # [BLOCK_SEGMENTS, BLOCK_D]
            o_s = tl.load(partial + slot[:, None] * HEAD_DIM + offs_d[None, :], mask=mask, other=0.0)
            l_s = tl.load(partial_total + slot, mask=exists, other=0.0)  # [BLOCK_SEGMENTS]
            m_s = tl.load(partial_maximum + slot, mask=exists, other=float("-inf"))  # [BLOCK_SEGMENTS]
            m_new = tl.max(m_s, axis=0)
            alpha = tl.exp2(m_s - tl.where(m_new == float("-inf"), 0.0, m_new))  # minus infinity: a token sees nothing
            l_i = tl.sum(l_s * alpha, axis=0)
            result = tl.sum(o_s * alpha[:, None], axis=0) / tl.where(l_i > 0.0, l_i, 1.0)  # [BLOCK_D]
            target = out + (start + token).to(tl.int64) * out_stride + head * out_head_stride + offs_d
            tl.store(target, result.to(out.dtype.element_ty), mask=offs_d < HEAD_DIM)


@dataclass(frozen=True)
class Parts:
    """Into how many segments each sequence is divided at most, and the room for what these leave, in float32.

    ``partial`` are accumulators [tokens, heads, segments, head_dim], ``maxima`` and ``totals`` [tokens, heads,
    segments]; all are empty when there is one segment.
    """

    segments: int
    partial: torch.Tensor
    maxima: torch.Tensor
    totals: torch.Tensor

    @property
    def arguments(self) -> dict[str, object]:
        """What both kernels are given of them."""
        return {
            "partial": self.partial,
            "partial_maximum": self.maxima,
            "partial_total": self.totals,
            "segments": self.segments,
        }


def most_segments(positions: int, programs: int, wanted: int, *, interpreted: bool) -> int:
    """So many segments of ``positions`` that ``programs`` become ``wanted``, but none of few positions."""
    if interpreted:  # several segments of few positions
        return 3
    return max(min(wanted // max(programs, 1), positions // LEAST_SEGMENT, MOST_SEGMENTS), 1)


def parts(like: torch.Tensor, tokens: int, segments: int) -> Parts:
    """Room for ``segments`` parts of the results of ``tokens`` tokens, like those of ``like`` [.., heads, head_dim]."""
    heads, head_dim = like.shape[1:]
    slots = tokens * heads * segments if segments > 1 else 0
    room = allocated(like.new_empty(slots * (head_dim + 2), dtype=torch.float32))
    return Parts(segments, *room.split([slots * head_dim, slots, slots]))


def merge(
    made: Parts,
    out: torch.Tensor,
    sequence_lengths: torch.Tensor,
    capacity: int,
    tile: int,
    *,
    window: int = UNBOUNDED,
    cumulative_query_lengths: torch.Tensor | None = None,
    queries: int = 1,
) -> None:
    """Merge the segments of every head into ``out`` [tokens, heads, head_dim]; nothing when there is one.

    Sequences have one token each or, with ``cumulative_query_lengths``, those of at most ``queries`` are merged.
    """
    heads, head_dim = out.shape[1:]
    columns = min(triton.next_power_of_2(head_dim), 32)  # few, so that there are programs enough
    if made.segments > 1:
        launch(
            _merge_kernel,
            (len(sequence_lengths), heads, triton.cdiv(head_dim, columns)),
            **made.arguments,
            cumulative_query_lengths=cumulative_query_lengths,
            sequence_lengths=sequence_lengths,
            out=out,
            heads=heads,
            capacity=capacity,
            window=window,
            out_stride=out.stride(0),
            out_head_stride=out.stride(1),
            QUERIES=queries,
            TILE=tile,
            HEAD_DIM=head_dim,
            BLOCK_D=columns,
            BLOCK_SEGMENTS=triton.next_power_of_2(made.segments),
            num_warps=4,
        )
