"""Decoding of latent attention with many heads for Hopper, in Gluon: a warp loads by TMA, two warpgroups attend.

It computes what ``_attend_kernel`` of ``latent_attention.py`` computes for blocks of 64 heads. There, all warps load,
multiply and take exponentials by turns. Here one warpgroup computes scores and weights, and both multiply these with
values, each with half of their columns. Loads run ahead: each part of a tile is loaded as soon as its place is free.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels_smoke.attention.parts import Parts
from kernels_smoke.launch_plan import launch
from kernels_smoke.mla.specialized_loading import _find, _load

BLOCK_H = 64  # heads of a program: the rows of a product of a warpgroup
TILE = 64  # positions
STAGES = 2  # tiles that are loaded or in use: with the queries, they fill the shared memory
LATENT = 512
ROPE = 64
ALIGNMENT = 16  # bytes: TMA wants the first element and every row to begin at a multiple of this
DTYPES = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}


@gluon.jit
def _score(s, q_tiles, tiles, full, step, STAGES: gl.constexpr):
    """Begin the scores [BLOCK_H, TILE] of the tile of this step, each part of it when it has come."""
    q_left, q_right, q_rope = q_tiles
    left, right, keys = tiles
    stage = step % STAGES
    phase = step // STAGES & 1
    mbarrier.wait(full.index(3 * stage), phase)
    # [BLOCK_H, TILE], as the two sums below
    s = warpgroup_mma(q_rope, keys.index(stage).permute((1, 0)), s, use_acc=False, is_async=True)
    mbarrier.wait(full.index(3 * stage + 1), phase)
    s = warpgroup_mma(q_left, left.index(stage).permute((1, 0)), s, is_async=True)
    mbarrier.wait(full.index(3 * stage + 2), phase)
    return warpgroup_mma(q_right, right.index(stage).permute((1, 0)), s, is_async=True)


@gluon.jit
def _weigh(s, acc, m_i, l_i, scale, step, room, barriers, layout: gl.constexpr):
    """The weights of a tile, for this warpgroup and, with the factor to rescale by, in shared memory for the other.

    Returns the weights as an operand [BLOCK_H, TILE], and accumulator, maximum and sum. ``layout`` is that of ``acc``.
    """
    weights, factors = room
    _, _, _, weights_full, weights_empty = barriers
    m_new = gl.maximum(m_i, gl.max(s, axis=1) * scale)  # [BLOCK_H]
    alpha = gl.exp2(m_i - m_new)
    # Here, and not just before the weights are stored: the assembler moves nothing over the loop that waits, and what
    # follows has both the exponentials and the products with the accumulator, which take other units.
    mbarrier.wait(weights_empty, (step & 1) ^ 1)
    acc = acc * gl.convert_layout(alpha, gl.SliceLayout(1, layout), assert_trivial=True)[:, None]
    p = gl.exp2(s * scale - m_new[:, None])  # [BLOCK_H, TILE]
    rounded = p.to(weights.dtype)
    weights.store(rounded)
    factors.store(alpha)
    fence_async_shared()
    mbarrier.arrive(weights_full)
    l_i = l_i * alpha + gl.sum(p, axis=1)  # [BLOCK_H]
    operand: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=layout, k_width=2)
    return gl.convert_layout(rounded, operand, assert_trivial=True), acc, m_new, l_i


@gluon.jit
def _clear_behind(part, within, TILE: gl.constexpr):
    """Set the rows of a part of a tile to zero from row ``within`` on.

    They are behind the end and may be anything, also what is not a number; and zero times that is not zero.
    """
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [1, 32], [4, 1], [1, 0])
    keep = gl.arange(0, TILE, gl.SliceLayout(1, layout)) < within  # [TILE]
    part.store(gl.where(keep[:, None], part.load(layout), 0.0))  # [TILE, LATENT / 2]
    fence_async_shared()


@gluon.jit
def _store_rows(target, values, head, heads, stride, layout: gl.constexpr):
    """Store the rows of ``values`` that are heads, ``stride`` elements apart."""
    offs_h = head + gl.arange(0, values.shape[0], gl.SliceLayout(1, layout))
    offs_c = gl.arange(0, values.shape[1], gl.SliceLayout(0, layout))
    gl.store(target + (offs_h * stride)[:, None] + offs_c[None, :], values, mask=(offs_h < heads)[:, None])


@gluon.jit
def _store(
    acc, l_i, staged, target, room, divided, heads, head, head_stride, part_stride, layout: gl.constexpr
):  # fmt: skip  # tensors, sizes, strides, constants
    """Store half of the columns: divided by ``l_i`` to ``target``, or as they are to ``room``, one of several parts."""
    if divided:
        _store_rows(room, acc, head, heads, part_stride, layout)
    else:
        blocked: gl.constexpr = gl.BlockedLayout([1, 8], [1, 32], [4, 1], [1, 0])
        acc = acc / gl.where(l_i > 0.0, l_i, 1.0)[:, None]  # an empty sequence gives zero
        staged.store(acc.to(staged.dtype))  # [BLOCK_H, LATENT / 2]
        _store_rows(target, staged.load(blocked), head, heads, head_stride, blocked)


@gluon.jit
def _attend_left(
    sequence_lengths, out, partial, maxima, totals, sizes, scale, out_stride, out_head_stride, barriers, room, q_tiles,
    tiles,
    BLOCK_H: gl.constexpr, TILE: gl.constexpr, LATENT: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # tensors, sizes, strides, barriers and buffers, constants
    """The warpgroup that computes scores and weights, and multiplies these with the left half of the values."""
    half: gl.constexpr = LATENT // 2
    of_scores: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, TILE, 16]
    )
    of_values: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, half, 16]
    )
    q_full, full, empty, weights_full, weights_empty = barriers
    q_left, _, _ = q_tiles
    left, _, _ = tiles
    _, factors = room
    place, work, divided = _find(sequence_lengths, sizes, BLOCK_H, TILE)
    head, sequence, segment = place
    first_tile, last_tile, end = work
    heads, _, segments = sizes
    m_i = gl.full([BLOCK_H], float("-inf"), gl.float32, gl.SliceLayout(1, of_scores))
    l_i = gl.zeros([BLOCK_H], gl.float32, gl.SliceLayout(1, of_scores))
    acc = gl.zeros([BLOCK_H, half], gl.float32, of_values)
    if first_tile < last_tile:
        mbarrier.wait(q_full, 0)
        s = gl.zeros([BLOCK_H, TILE], gl.float32, of_scores)
        s = warpgroup_mma_wait(0, deps=[_score(s, q_tiles, tiles, full, 0, STAGES)])
        for step in range(last_tile - 1 - first_tile):
            stage = step % STAGES
            p, acc, m_i, l_i = _weigh(s, acc, m_i, l_i, scale, step, room, barriers, of_values)
            sums = warpgroup_mma(p, left.index(stage), acc, is_async=True)  # [BLOCK_H, LATENT / 2]
            mbarrier.arrive(empty.index(3 * stage))
            scores = _score(s, q_tiles, tiles, full, step + 1, STAGES)
            acc = warpgroup_mma_wait(3, deps=[sums])
            mbarrier.arrive(empty.index(3 * stage + 1))
            s = warpgroup_mma_wait(0, deps=[scores])
        # The last tile, of which some positions may be behind the end.
        step = last_tile - 1 - first_tile
        stage = step % STAGES
        within = end - (last_tile - 1) * TILE
        seen = gl.arange(0, TILE, gl.SliceLayout(0, of_scores)) < within
        s = gl.where(seen[None, :], s, float("-inf"))
        if within < TILE:
            _clear_behind(left.index(stage), within, TILE)
        p, acc, m_i, l_i = _weigh(s, acc, m_i, l_i, scale, step, room, barriers, of_values)
        acc = warpgroup_mma(p, left.index(stage), acc)  # [BLOCK_H, LATENT / 2]
        mbarrier.wait(weights_empty, step & 1)
        factors.store(l_i)
        mbarrier.arrive(weights_full)
    if (segment == 0) | (first_tile < last_tile):
        slots = (sequence.to(gl.int64) * heads) * segments + segment
        if divided:
            offs_h = head + gl.arange(0, BLOCK_H, gl.SliceLayout(1, of_scores))
            gl.store(maxima + slots + offs_h * segments, m_i, mask=offs_h < heads)
            gl.store(totals + slots + offs_h * segments, l_i, mask=offs_h < heads)
        total = gl.convert_layout(l_i, gl.SliceLayout(1, of_values), assert_trivial=True)
        _store(
            acc, total, q_left, out + sequence.to(gl.int64) * out_stride, partial + slots * LATENT, divided, heads,
            head, out_head_stride, segments * LATENT, of_values,
        )  # fmt: skip


@gluon.jit
def _attend_right(
    sequence_lengths, out, partial, sizes, out_stride, out_head_stride, barriers, room, q_tiles, tiles,
    BLOCK_H: gl.constexpr, TILE: gl.constexpr, LATENT: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # tensors, sizes, strides, barriers and buffers, constants
    """The warpgroup that multiplies the weights with the right half of the values."""
    half: gl.constexpr = LATENT // 2
    of_values: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, half, 16]
    )
    _, full, empty, weights_full, weights_empty = barriers
    _, q_right, _ = q_tiles
    _, right, _ = tiles
    weights, factors = room
    place, work, divided = _find(sequence_lengths, sizes, BLOCK_H, TILE)
    head, sequence, segment = place
    first_tile, last_tile, end = work
    heads, _, segments = sizes
    l_i = gl.zeros([BLOCK_H], gl.float32, gl.SliceLayout(1, of_values))
    acc = gl.zeros([BLOCK_H, half], gl.float32, of_values)
    if first_tile < last_tile:
        for step in range(last_tile - first_tile):
            stage = step % STAGES
            mbarrier.wait(full.index(3 * stage + 2), step // STAGES & 1)
            mbarrier.wait(weights_full, step & 1)  # the other warpgroup has read the keys by now
            within = end - (first_tile + step) * TILE
            if within < TILE:
                _clear_behind(right.index(stage), within, TILE)
            acc = acc * factors.load(gl.SliceLayout(1, of_values))[:, None]
            acc = warpgroup_mma(weights, right.index(stage), acc)  # [BLOCK_H, LATENT / 2]
            mbarrier.arrive(weights_empty)
            mbarrier.arrive(empty.index(3 * stage + 2))
        mbarrier.wait(weights_full, last_tile - first_tile & 1)
        l_i = factors.load(gl.SliceLayout(1, of_values))
    if (segment == 0) | (first_tile < last_tile):
        slots = (sequence.to(gl.int64) * heads) * segments + segment
        _store(
            acc, l_i, q_right, out + sequence.to(gl.int64) * out_stride + half, partial + slots * LATENT + half,
            divided, heads, head, out_head_stride, segments * LATENT, of_values,
        )  # fmt: skip


@gluon.jit
def _attend_heads_kernel(
    query_latent, query_rope, latent, rope, page_table, sequence_lengths, out, partial, partial_maximum, partial_total,
    heads, capacity, segments, scale, query_rows, page_rows, table_stride, out_stride, out_head_stride,
    BLOCK_H: gl.constexpr, TILE: gl.constexpr, PAGE_SIZE: gl.constexpr, LATENT: gl.constexpr, ROPE: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip  # descriptors, tensors and sizes, strides, constants
    # A tile has three parts, each with its own barriers: the key (ROPE), and two halves of the latent vectors.
    dtype: gl.constexpr = latent.dtype
    half: gl.constexpr = LATENT // 2
    of_weights: gl.constexpr = gl.NVMMASharedLayout.get_default_for([BLOCK_H, TILE], dtype)
    of_factors: gl.constexpr = gl.SwizzledSharedLayout(1, 1, 1, order=[0])
    q_tiles = (
        gl.allocate_shared_memory(dtype, [BLOCK_H, half], query_latent.layout),
        gl.allocate_shared_memory(dtype, [BLOCK_H, half], query_latent.layout),
        gl.allocate_shared_memory(dtype, [BLOCK_H, ROPE], query_rope.layout),
    )
    tiles = (
        gl.allocate_shared_memory(dtype, [STAGES, TILE, half], latent.layout),
        gl.allocate_shared_memory(dtype, [STAGES, TILE, half], latent.layout),
        gl.allocate_shared_memory(dtype, [STAGES, TILE, ROPE], rope.layout),
    )
    room = (
        gl.allocate_shared_memory(dtype, [BLOCK_H, TILE], of_weights),
        gl.allocate_shared_memory(gl.float32, [BLOCK_H], of_factors),
    )
    full = gl.allocate_shared_memory(gl.int64, [3 * STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [3 * STAGES, 1], mbarrier.MBarrierLayout())
    q_full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    weights_full = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    weights_empty = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    for part in gl.static_range(3 * STAGES):
        mbarrier.init(full.index(part), count=1)
        mbarrier.init(empty.index(part), count=1)
    mbarrier.init(q_full, count=1)
    mbarrier.init(weights_full, count=1)
    mbarrier.init(weights_empty, count=1)
    fence_async_shared()
    barriers = (q_full, full, empty, weights_full, weights_empty)
    sizes = (heads, capacity, segments)
    gl.warp_specialize(
        [
            (_attend_left, (sequence_lengths, out, partial, partial_maximum, partial_total, sizes, scale, out_stride,
                            out_head_stride, barriers, room, q_tiles, tiles, BLOCK_H, TILE, LATENT, STAGES)),
            (_attend_right, (sequence_lengths, out, partial, sizes, out_stride, out_head_stride, barriers, room,
                             q_tiles, tiles, BLOCK_H, TILE, LATENT, STAGES)),
            (_load, ((query_latent, query_rope), (latent, rope), page_table, sequence_lengths, sizes, table_stride,
                     query_rows, page_rows, barriers, q_tiles, tiles, BLOCK_H, TILE, PAGE_SIZE, LATENT, ROPE, STAGES)),
        ],
        [4, 1],
        [240, 24],
    )  # fmt: skip


def attend_heads(
    query: torch.Tensor,
    cache: torch.Tensor,
    page_table: torch.Tensor,
    sequence_lengths: torch.Tensor,
    out: torch.Tensor,
    *,
    made: Parts,
    scale: float,
) -> None:
    """Launch a program for each block of 64 heads and each segment of a sequence; ``fits`` is true of the tensors."""
    (sequences, heads, _), (pages, page_size, width) = query.shape, cache.shape
    query_rows, page_rows = query.stride(0) // query.stride(1), cache.stride(0) // cache.stride(1)
    query_shape = [(sequences - 1) * query_rows + heads, width]
    cache_shape = [(pages - 1) * page_rows + page_size, width]

    def described(tensor: torch.Tensor, shape: list[int], columns: int) -> TensorDescriptor:
        layout = gl.NVMMASharedLayout.get_default_for([TILE, columns], DTYPES[tensor.dtype])
        return TensorDescriptor(tensor, shape, [tensor.stride(1), 1], [TILE, columns], layout)

    launch(
        _attend_heads_kernel,
        (sequences * made.segments * triton.cdiv(heads, BLOCK_H),),
        query_latent=described(query, query_shape, LATENT // 2),
        query_rope=described(query, query_shape, ROPE),
        latent=described(cache, cache_shape, LATENT // 2),
        rope=described(cache, cache_shape, ROPE),
        page_table=page_table,
        sequence_lengths=sequence_lengths,
        out=out,
        **made.arguments,
        heads=heads,
        capacity=page_table.shape[1] * page_size,
        scale=scale,
        query_rows=query_rows,
        page_rows=page_rows,
        table_stride=page_table.stride(0),
        out_stride=out.stride(0),
        out_head_stride=out.stride(1),
        BLOCK_H=BLOCK_H,
        TILE=TILE,
        PAGE_SIZE=page_size,
        LATENT=LATENT,
        ROPE=ROPE,
        STAGES=STAGES,
        num_warps=4,
    )


def fits(query: torch.Tensor, cache: torch.Tensor, latent_dim: int) -> bool:
    """Whether the kernel in Gluon can take these: DeepSeek's widths, pages of whole tiles, strides that suit TMA."""
    pages, page_size, width = cache.shape
    sizes = (latent_dim, width) == (LATENT, LATENT + ROPE) and query.dtype in DTYPES and page_size % TILE == 0
    aligned = all(
        tensor.data_ptr() % ALIGNMENT == 0
        and tensor.stride(1) * tensor.itemsize % ALIGNMENT == 0
        and tensor.stride(1) >= width
        and tensor.stride(0) >= tensor.shape[1] * tensor.stride(1)
        and tensor.stride(0) % tensor.stride(1) == 0
        and tensor.shape[0] * (tensor.stride(0) // tensor.stride(1)) < 2**31
        for tensor in (query, cache)
    )
    return sizes and aligned and pages > 0
