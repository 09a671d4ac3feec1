"""Decoding over a paged cache that may be fp8, with a window, sinks and a soft cap."""

import math
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.attention.decode_arguments import check_decoding
from kernels_smoke.attention.parts import UNBOUNDED, _share, _store, _tiles_seen, merge, most_segments, parts
from kernels_smoke.launch import architecture, check_scale, multiprocessors, on_device_of, require
from kernels_smoke.launch_plan import allocated, launch, plannable

FEW_ROWS = 16  # the least of a matrix product


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out: ``tile`` positions in a step, ``warps`` and ``stages`` of one program.

    ``fill``: programs for each multiprocessor, into which few sequences are divided. ``rows``: the least of a block.
    """

    tile: int
    warps: int
    stages: int
    fill: int = 2
    rows: int = FEW_ROWS


def configure(head_dim: int, element_size: int, architecture: str) -> Configuration:
    """The layout for heads of ``head_dim`` elements of ``element_size`` bytes: see "Layouts" in README.md."""
    if architecture == "interpret":
        return Configuration(16, warps=4, stages=1)
    tile = min(max(8 * 1024 // (triton.next_power_of_2(head_dim) * element_size), 16), 128)
    if architecture.startswith("gfx"):  # 64 KiB of local memory
        return Configuration(min(tile, 32), warps=4, stages=2)
    return Configuration(tile, warps=2 if element_size == 1 else 4, stages=3)


@triton.jit
def _pages_of(tile, pages, end, TILE: tl.constexpr, PAGE_SIZE: tl.constexpr):
    """The page of each position of a tile; the first page behind the end."""
    position = tile * TILE + tl.arange(0, TILE)
    return tl.load(pages + position // PAGE_SIZE, mask=position < end, other=0)  # [TILE]


@triton.jit
def _begin(sinks, head, row_mask, segment, BLOCK_M: tl.constexpr):
    """Maximum and sum of the softmax [BLOCK_M] before the first position."""
    m_i = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    l_i = tl.zeros((BLOCK_M,), tl.float32)
    if sinks is not None:  # a position that has a score and no value, in the first segment
        sink = tl.load(sinks + head, mask=row_mask, other=0.0).to(tl.float32) * 1.4426950408889634  # [BLOCK_M]
        first = segment == 0
        m_i = tl.where(first, sink, m_i)
        l_i = tl.where(first, 1.0, l_i)
    return m_i, l_i


@triton.jit
def _scaled(q, HALF: tl.constexpr):
    """``q`` [BLOCK_M, BLOCK_D], and what its rows are to be multiplied by [BLOCK_M].

    HALF: in float16, into whose range each row is brought by a power of two.
    """
    factor = tl.full((q.shape[0],), 1.0, tl.float32)
    if HALF:
        largest = tl.max(tl.abs(q.to(tl.float32)), axis=1)
        factor = tl.exp2(tl.floor(tl.log2(tl.where(largest > 0.0, largest, 1.0))))
        q = (q.to(tl.float32) / factor[:, None]).to(tl.float16)
    return q, factor


@triton.jit
def _decode_kernel(
    query, key_cache, value_cache, page_table, sequence_lengths, key_scale, value_scale, sinks, out, partial,
    partial_maximum, partial_total, segments, heads, capacity, window, scale, soft_cap,
    query_stride, query_head_stride, page_stride, position_stride, kv_head_stride, table_stride, out_stride,
    out_head_stride,
    GROUP: tl.constexpr, BLOCK_M: tl.constexpr, TILE: tl.constexpr, PAGE_SIZE: tl.constexpr, HEAD_DIM: tl.constexpr,
    BLOCK_D: tl.constexpr, SOFT_CAP: tl.constexpr, HALF: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # A sequence has one query token: its last position.
    # HALF: fp8 becomes float16, which is a quarter of the work of bfloat16; both are exact.
    # One program attends with the query heads that share a head of keys to one segment of one sequence.
    kv_heads = heads // GROUP
    item = tl.program_id(0)
    kv_head = item % kv_heads
    segment = item // kv_heads % segments
    sequence = item // (kv_heads * segments)
    end = max(min(tl.load(sequence_lengths + sequence), capacity), 0)  # [1]
    begin, behind = _tiles_seen(end, window, TILE)
    share = _share(behind - begin, segments)
    first_tile = begin + segment * share
    if (segment == 0) | (first_tile < behind):
        row = tl.arange(0, BLOCK_M)
        offs_d = tl.arange(0, BLOCK_D)
        row_mask = row < GROUP
        head = kv_head * GROUP + row
        mask = row_mask[:, None] & (offs_d < HEAD_DIM)[None, :]
        q_rows = query + sequence.to(tl.int64) * query_stride + (head * query_head_stride)[:, None]
        q = tl.load(q_rows + offs_d[None, :], mask=mask, other=0.0)  # [BLOCK_M, BLOCK_D]
        scale *= 1.0 if key_scale is None else tl.load(key_scale + kv_head)  # [1]
        dtype: tl.constexpr = tl.float16 if HALF else query.dtype.element_ty
        q, factor = _scaled(q, HALF)
        row_scale = factor * scale
        m_i, l_i = _begin(sinks, head, row_mask, segment, BLOCK_M)
        acc = tl.zeros((BLOCK_M, BLOCK_D), tl.float32)
        pages = page_table + sequence.to(tl.int64) * table_stride
        cache = kv_head.to(tl.int64) * kv_head_stride
        page = _pages_of(first_tile, pages, end, TILE, PAGE_SIZE)
        for tile in range(first_tile, min(first_tile + share, behind)):
            position = tile * TILE + tl.arange(0, TILE)
            # The next tile's pages are looked up one step ahead: only so can its keys be loaded several steps ahead.
            next_page = _pages_of(tile + 1, pages, end, TILE, PAGE_SIZE)
            offset = (page.to(tl.int64) * page_stride + position % PAGE_SIZE * position_stride)[:, None]
            page = next_page
            # Behind the end may be anything, also what is not a number; and zero times that is not zero.
            kv_mask = (position < end)[:, None] & (offs_d < HEAD_DIM)[None, :]
            k = tl.load(key_cache + cache + offset + offs_d[None, :], mask=kv_mask, other=0.0)  # [TILE, BLOCK_D]
            v = tl.load(value_cache + cache + offset + offs_d[None, :], mask=kv_mask, other=0.0)  # [TILE, BLOCK_D]
            s = tl.dot(q, k.to(dtype).T, input_precision="ieee") * row_scale[:, None]  # [BLOCK_M, TILE]
            if SOFT_CAP:  # cap * tanh(s / cap), with s / cap in units of log2(e) / 2
                s = soft_cap - 2.0 * soft_cap / (tl.exp2(s) + 1.0)
            s = tl.where(((position < end) & (position >= end - window))[None, :], s, float("-inf"))
            m_new = tl.maximum(m_i, tl.max(s, axis=1))  # [BLOCK_M]
            p = tl.exp2(s - m_new[:, None])
            alpha = tl.exp2(m_i - m_new)
            l_i = l_i * alpha + tl.sum(p, axis=1)  # [BLOCK_M]
            acc = tl.dot(p.to(dtype), v.to(dtype), acc * alpha[:, None], input_precision="ieee")  # [BLOCK_M, BLOCK_D]
            m_i = m_new
        if value_scale is not None:
            acc *= tl.load(value_scale + kv_head)  # [1]
        slot = (sequence.to(tl.int64) * heads + head) * segments + segment
        target = out + sequence.to(tl.int64) * out_stride + (head * out_head_stride)[:, None] + offs_d[None, :]
        room = partial + slot[:, None] * HEAD_DIM + offs_d[None, :]
        _store(
            acc, m_i, l_i, target, room, partial_maximum + slot, partial_total + slot, mask, row_mask,
            share < behind - begin,
        )  # fmt: skip


@plannable
def paged_attention_decode(
    query: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    page_table: torch.Tensor,
    sequence_lengths: torch.Tensor,
    *,
    scale: float | None = None,
    key_scale: torch.Tensor | None = None,
    value_scale: torch.Tensor | None = None,
    window: int | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    longest_sequence: int | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``softmax(s) V`` for the last token of each sequence, with ``s = scale * q K^T`` of the positions it sees.

    Pages and heads are those of ``paged_attention``. What can be added:

    - ``key_scale``, ``value_scale``: [kv_heads], float32: what the elements of a cache are to be multiplied by. Caches
      of float8_e4m3fn are written with such scales (vLLM, ``kv_cache_dtype="fp8"``).
    - ``window``: a token sees its own position and those before it, ``window`` in all (Beltagy et al., "Longformer"
      (2020), section 3.1).
    - ``sinks``: [heads], of the dtype of ``query`` or float32: ``exp(sinks[h])`` is added to the sum of the weights of
      head h (OpenAI, "gpt-oss-120b & gpt-oss-20b Model Card" (2025), section 2.2).
    - ``soft_cap``: scores become ``soft_cap * tanh(s / soft_cap)`` (Gemma Team, "Gemma 2" (2024), section 2).

    The other arguments:

    - ``query``: [sequences, heads, head_dim], bfloat16, float16 or float32.
    - ``key_cache``, ``value_cache``: [pages, page_size, kv_heads, head_dim], of that dtype or float8_e4m3fn, with the
      same strides. Rows of them, of ``query`` and of the result may be strided.
    - ``page_table``: [sequences, most pages of a sequence], int32. Pages before the window are not read.
    - ``sequence_lengths``: [sequences], int32. The result of a sequence without positions is zero.
    - ``scale``: of the scores, positive; 1 / sqrt(head_dim) unless said otherwise.
    - ``longest_sequence``: an upper bound of the lengths, which must be kept; else all that there is room for.
    - ``out``: the result, like ``query``.

    The integer tensors are read on the GPU only: captured in a CUDA graph, a call serves every batch for which there is
    room. Page numbers are not checked.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    out = allocated(torch.empty_like(query)) if out is None else out
    tensors = {
        "query": query,
        "key_cache": key_cache,
        "value_cache": value_cache,
        "page_table": page_table,
        "sequence_lengths": sequence_lengths,
    }
    options = {"key_scale": key_scale, "value_scale": value_scale, "sinks": sinks}
    check_decoding({**tensors, "out": out}, options)
    (sequences, heads, head_dim), (_, page_size, kv_heads, _) = query.shape, key_cache.shape
    for name, bound in (("window", window), ("longest_sequence", longest_sequence)):
        require(bound is None or 0 < bound < 2**31, f"{name} must be 1 or more, not {bound}")
    scale = 1.0 / math.sqrt(head_dim) if scale is None else scale
    check_scale(scale)
    check_scale(1.0 if soft_cap is None else soft_cap, "soft_cap")
    if not out.numel():
        return out

    with on_device_of(query):
        choice = configure(head_dim, key_cache.itemsize, architecture().name)
        capacity = page_table.shape[1] * page_size
        seen = min(window or UNBOUNDED, longest_sequence or capacity, capacity)
        segments = most_segments(
            seen,
            programs=sequences * kv_heads,
            wanted=choice.fill * multiprocessors(query),
            interpreted=architecture().backend == "interpret",
        )
        made = parts(out, sequences, segments)
        log2e = math.log2(math.e)
        launch(
            _decode_kernel,
            (sequences * segments * kv_heads,),
            **tensors,
            **options,
            out=out,
            **made.arguments,
            heads=heads,
            capacity=capacity,
            window=window or UNBOUNDED,
            scale=scale * (log2e if soft_cap is None else 2.0 * log2e / soft_cap),
            soft_cap=0.0 if soft_cap is None else soft_cap * log2e,
            query_stride=query.stride(0),
            query_head_stride=query.stride(1),
            page_stride=key_cache.stride(0),
            position_stride=key_cache.stride(1),
            kv_head_stride=key_cache.stride(2),
            table_stride=page_table.stride(0),
            out_stride=out.stride(0),
            out_head_stride=out.stride(1),
            GROUP=heads // kv_heads,
            BLOCK_M=max(triton.next_power_of_2(heads // kv_heads), choice.rows),
            TILE=choice.tile,
            PAGE_SIZE=page_size,
            HEAD_DIM=head_dim,
            BLOCK_D=max(triton.next_power_of_2(head_dim), FEW_ROWS),
            SOFT_CAP=soft_cap is not None,
            HALF=key_cache.dtype != query.dtype and query.dtype == torch.bfloat16,
            num_warps=choice.warps,
            num_stages=choice.stages,
        )
        merge(made, out, sequence_lengths, capacity, choice.tile, window=window or UNBOUNDED)
    return out
