"""Paged attention of prompts for Hopper, in Gluon: one warp loads pages by TMA, two warpgroups attend.

It computes what ``_attend_kernel`` of ``tiled_softmax.py`` computes for blocks of query tokens. There, all warps load,
multiply and take exponentials by turns; here they overlap: while a warpgroup takes the exponentials of a tile, its
weights of the tile before meet their values, and the other warpgroup multiplies. The structure is that of Shah et al.,
"FlashAttention-3" (2024), sections 3.1 and 3.2.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels_smoke.attention.specialized_loading import _count, _find, _load
from kernels_smoke.launch import multiprocessors
from kernels_smoke.launch_plan import launch

ALIGNMENT = 16  # bytes: TMA wants the first element and every row to begin at a multiple of this
HEAD_DIM = 128
BLOCK_M = 128  # rows of a block: query tokens by the heads that share a head of keys
TILE = 128  # positions
STAGES = 2  # tiles of keys, and of values, that are loaded or in use
HALF_D = 64  # elements of a head in a box: as many as a swizzle of 128 bytes holds
DTYPES = {torch.bfloat16: gl.bfloat16, torch.float16: gl.float16}


@gluon.jit
def _mask(s, limit, tile, layout: gl.constexpr, TILE: gl.constexpr):
    """The scores of the positions up to ``limit`` of each row; minus infinity behind."""
    within = gl.arange(0, TILE, gl.SliceLayout(0, layout))  # [TILE]
    return gl.where(within[None, :] <= (limit - tile * TILE)[:, None], s, float("-inf"))


@gluon.jit
def _softmax(s, m_i, l_i, scale):
    """The weights of a tile, the factor of what was summed before, and the new maximum and sum of each row."""
    m_new = gl.maximum(m_i, gl.max(s, axis=1) * scale)  # [BLOCK_M / 2]
    # A row may have seen nothing yet, and infinity less infinity is not a number.
    base = gl.where(m_new == float("-inf"), 0.0, m_new)
    p = gl.exp2(s * scale - base[:, None])  # [BLOCK_M / 2, TILE]
    alpha = gl.exp2(m_i - base)
    l_i = l_i * alpha + gl.sum(p, axis=1)  # [BLOCK_M / 2]
    return p, alpha, m_new, l_i


@gluon.jit
def _attend_tiles(
    q, k_tiles, v_tiles, barriers, state, limit, scale, step, tiles, whole,
    layout: gl.constexpr, operand: gl.constexpr, TILE: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # operands, softmax so far, positions, constants
    """Attend to the tiles before the last one, back to the first.

    ``state`` are the weights of the tile before, which have not met its values, and the accumulator, maximum and sum.
    """
    _, _, k_full, k_empty, v_full, v_empty = barriers
    weights, acc, m_i, l_i = state
    for back in range(tiles - 1):
        tile = tiles - 2 - back
        before = step % STAGES
        values_came = step // STAGES & 1
        step += 1
        stage = step % STAGES
        p = gl.convert_layout(weights.to(q.dtype), operand)  # [BLOCK_M / 2, TILE]
        # [BLOCK_M / 2, TILE]
        s = warpgroup_mma(q, k_tiles.index(stage).permute((1, 0)), weights, use_acc=False, is_async=True)
        mbarrier.wait(v_full.index(before), values_came)
        acc = warpgroup_mma(p, v_tiles.index(before), acc, is_async=True)  # [BLOCK_M / 2, HEAD_DIM]
        s = warpgroup_mma_wait(1, deps=[s])
        mbarrier.arrive(k_empty.index(stage))
        if tile >= whole:
            s = _mask(s, limit, tile, layout, TILE)
        weights, alpha, m_i, l_i = _softmax(s, m_i, l_i, scale)
        # Here, and not before the next product: the assembler moves no exponentials over this loop, but over the wait.
        mbarrier.wait(k_full.index((step + 1) % STAGES), (step + 1) // STAGES & 1, pred=tile > 0)
        acc, weights = warpgroup_mma_wait(0, deps=[acc, weights])
        mbarrier.arrive(v_empty.index(before))
        acc = acc * alpha[:, None]
    return weights, acc, l_i, step


@gluon.jit
def _clear_behind(
    length, last, boxes, stage, cleared, phase,
    PART: gl.constexpr, TILE: gl.constexpr, ROWS: gl.constexpr,
):  # fmt: skip  # positions, buffer, barrier, constants
    """Set the values behind the last position to zero, in the page that holds it, which is in the tile ``last``.

    They may be anything, also what is not a number; and zero times that is not zero. Each warpgroup does half of the
    width, and waits for the other one.
    """
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [4, 8], [4, 1], [1, 0])
    count: gl.constexpr = TILE // ROWS
    within = length - last * TILE
    keep = gl.arange(0, ROWS, gl.SliceLayout(1, layout)) < within % ROWS  # [ROWS]
    box = boxes.index(stage * (2 * count) + PART * count + within // ROWS)
    box.store(gl.where(keep[:, None], box.load(layout), 0.0))  # [ROWS, HALF_D]
    fence_async_shared()
    mbarrier.arrive(cleared)
    mbarrier.wait(cleared, phase)


@gluon.jit
def _store(
    out, acc, start, first, queries, kv_head, out_stride, out_head_stride,
    FIRST_ROW: gl.constexpr, HEADS: gl.constexpr,
):  # fmt: skip  # tensors, positions, strides, constants
    """Store the rows of ``acc`` that are query tokens of the sequence."""
    layout: gl.constexpr = gl.BlockedLayout([1, 8], [2, 16], [4, 1], [1, 0])
    row = FIRST_ROW + gl.arange(0, acc.shape[0], gl.SliceLayout(1, layout))
    token = first + row // HEADS
    offs_d = gl.arange(0, acc.shape[1], gl.SliceLayout(0, layout))
    offset = (start + token).to(gl.int64) * out_stride + (kv_head * HEADS + row % HEADS) * out_head_stride
    result = gl.convert_layout(acc.to(out.dtype.element_ty), layout)  # [BLOCK_M / 2, HEAD_DIM]
    gl.store(out + offset[:, None] + offs_d[None, :], result, mask=(token < queries)[:, None])


@gluon.jit
def _attend(
    out, metadata, barriers, cleared, v_boxes, operands, sizes, scale, out_stride, out_head_stride,
    PART: gl.constexpr, KV_HEADS: gl.constexpr, QUERIES: gl.constexpr, HEADS: gl.constexpr, TILE: gl.constexpr,
    HALF_D: gl.constexpr, ROWS: gl.constexpr, PAGE_SIZE: gl.constexpr, STAGES: gl.constexpr, SINGLE: gl.constexpr,
):  # fmt: skip  # tensors, barriers and buffers, sizes, strides, constants
    """A warpgroup that attends: with the first (``PART`` 0) or the second half of the rows of each item."""
    half_m: gl.constexpr = QUERIES * HEADS // 2
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, TILE, 16])
    operand: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=layout, k_width=2)
    q_full, q_empty, k_full, k_empty, v_full, v_empty = barriers
    q_tiles, k_tiles, v_tiles = operands
    step = 0
    done = 0
    clearings = 0
    work = _count(metadata, sizes, KV_HEADS, QUERIES)
    for turn in range(gl.cdiv(work[0], gl.num_programs(0))):
        wanted, kv_head, _sequence, of_sequence, of_item, tile_counts = _find(
            turn, work, metadata, sizes, KV_HEADS, QUERIES, TILE, SINGLE, 4
        )
        if wanted:
            start, queries, length = of_sequence
            tiles, whole = tile_counts
            row = PART * half_m + gl.arange(0, half_m, gl.SliceLayout(1, layout))
            limit = length - queries + of_item[0] + row // HEADS  # the last position that a row sees
            m_i = gl.full([half_m], float("-inf"), gl.float32, gl.SliceLayout(1, layout))
            l_i = gl.zeros([half_m], gl.float32, gl.SliceLayout(1, layout))
            acc = gl.zeros([half_m, 2 * HALF_D], gl.float32, layout)
            slot = done % 2
            done += 1
            q = q_tiles.index(slot * 2 + PART)  # [half_m, HEAD_DIM]
            mbarrier.wait(q_full.index(slot), (done - 1) // 2 & 1)
            stage = step % STAGES
            mbarrier.wait(k_full.index(stage), step // STAGES & 1)
            s = gl.zeros([half_m, TILE], gl.float32, layout)
            s = warpgroup_mma(q, k_tiles.index(stage).permute((1, 0)), s, use_acc=False)  # [half_m, TILE]
            mbarrier.arrive(k_empty.index(stage))
            weights, _alpha, m_i, l_i = _softmax(_mask(s, limit, tiles - 1, layout, TILE), m_i, l_i, scale)
            if (tiles * TILE > length) & (length > 0) & (length % PAGE_SIZE != 0):
                mbarrier.wait(v_full.index(stage), step // STAGES & 1)
                _clear_behind(length, tiles - 1, v_boxes, stage, cleared, clearings & 1, PART, TILE, ROWS)
                clearings += 1
            mbarrier.wait(k_full.index((step + 1) % STAGES), (step + 1) // STAGES & 1, pred=tiles > 1)
            weights, acc, l_i, step = _attend_tiles(
                q, k_tiles, v_tiles, barriers, (weights, acc, m_i, l_i), limit, scale, step, tiles, whole,
                layout, operand, TILE, STAGES,
            )  # fmt: skip
            mbarrier.arrive(q_empty.index(slot))
            stage = step % STAGES
            mbarrier.wait(v_full.index(stage), step // STAGES & 1)
            p = gl.convert_layout(weights.to(q.dtype), operand)
            acc = warpgroup_mma(p, v_tiles.index(stage), acc)  # [half_m, HEAD_DIM]
            mbarrier.arrive(v_empty.index(stage))
            step += 1
            acc = acc / gl.where(l_i > 0.0, l_i, 1.0)[:, None]  # a row that sees nothing is zero
            _store(out, acc, start, of_item[0], queries, kv_head, out_stride, out_head_stride, PART * half_m, HEADS)


@gluon.jit
def _attend_prompts_kernel(
    query, keys, values, page_table, cumulative_query_lengths, sequence_lengths, out, sequences, capacity, above,
    scale, kv_head_stride, table_stride, out_stride, out_head_stride, page_rows, outside,
    KV_HEADS: gl.constexpr, QUERIES: gl.constexpr, HEADS: gl.constexpr, TILE: gl.constexpr, HALF_D: gl.constexpr,
    ROWS: gl.constexpr, PAGE_SIZE: gl.constexpr, STAGES: gl.constexpr, SINGLE: gl.constexpr,
):  # fmt: skip  # descriptors, tensors and sizes, strides, constants
    # TMA writes boxes of a page and half a head; the same memory, read as tiles, is swizzled as products want it.
    dtype: gl.constexpr = keys.dtype
    count: gl.constexpr = STAGES * 2 * TILE // ROWS
    half_m: gl.constexpr = QUERIES * HEADS // 2
    layout: gl.constexpr = gl.NVMMASharedLayout.get_default_for([TILE, 2 * HALF_D], dtype)
    q_boxes = gl.allocate_shared_memory(dtype, [8, QUERIES // 2, HEADS, HALF_D], query.layout)
    k_boxes = gl.allocate_shared_memory(dtype, [count, ROWS, HALF_D], keys.layout)
    v_boxes = gl.allocate_shared_memory(dtype, [count, ROWS, HALF_D], values.layout)
    q_tiles = q_boxes._reinterpret(dtype, [4, half_m, 2 * HALF_D], layout)  # noqa: SLF001  # Gluon has no other name
    k_tiles = k_boxes._reinterpret(dtype, [STAGES, TILE, 2 * HALF_D], layout)  # noqa: SLF001  # as above
    v_tiles = v_boxes._reinterpret(dtype, [STAGES, TILE, 2 * HALF_D], layout)  # noqa: SLF001  # as above
    q_full = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [2, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    cleared = gl.allocate_shared_memory(gl.int64, [1], mbarrier.MBarrierLayout())
    mbarrier.init(cleared, count=2)
    for slot in gl.static_range(2):
        mbarrier.init(q_full.index(slot), count=1)
        mbarrier.init(q_empty.index(slot), count=2)
    for stage in gl.static_range(STAGES):
        mbarrier.init(k_full.index(stage), count=1)
        mbarrier.init(k_empty.index(stage), count=2)
        mbarrier.init(v_full.index(stage), count=1)
        mbarrier.init(v_empty.index(stage), count=2)
    fence_async_shared()
    metadata = (page_table, cumulative_query_lengths, sequence_lengths)
    sizes = (sequences, capacity, above)
    barriers = (q_full, q_empty, k_full, k_empty, v_full, v_empty)
    operands = (q_tiles, k_tiles, v_tiles)
    # Of the registers, 240 for each thread that holds a tile's scores and weights and a sum, and 24 for one that loads.
    gl.warp_specialize(
        [
            (_attend, (out, metadata, barriers, cleared, v_boxes, operands, sizes, scale, out_stride, out_head_stride,
                       0, KV_HEADS, QUERIES, HEADS, TILE, HALF_D, ROWS, PAGE_SIZE, STAGES, SINGLE)),
            (_attend, (out, metadata, barriers, cleared, v_boxes, operands, sizes, scale, out_stride, out_head_stride,
                       1, KV_HEADS, QUERIES, HEADS, TILE, HALF_D, ROWS, PAGE_SIZE, STAGES, SINGLE)),
            (_load, (query, keys, metadata, (q_full, q_empty), k_full, k_empty, q_boxes, k_boxes, sizes,
                     kv_head_stride, table_stride, (page_rows, outside),
                     True, KV_HEADS, QUERIES, HEADS, TILE, HALF_D, ROWS, PAGE_SIZE, STAGES, SINGLE)),
            (_load, (query, values, metadata, (q_full, q_empty), v_full, v_empty, q_boxes, v_boxes, sizes,
                     kv_head_stride, table_stride, (page_rows, outside),
                     False, KV_HEADS, QUERIES, HEADS, TILE, HALF_D, ROWS, PAGE_SIZE, STAGES, SINGLE)),
        ],
        [4, 1, 1],
        [240, 24, 24],
    )  # fmt: skip


def attend_prompts(
    tensors: dict[str, torch.Tensor], out: torch.Tensor, *, scale: float, above: int, programs: int
) -> None:
    """Write into ``out`` what the query tokens of all sequences of more than ``above`` of them get.

    ``tensors`` are the arguments of ``paged_attention``, such that ``fits`` is true of them.
    """
    query, key_cache, value_cache = (tensors[name] for name in ("query", "key_cache", "value_cache"))
    page_table = tensors["page_table"]
    (tokens, heads, _), (pages, page_size, kv_heads, _) = query.shape, key_cache.shape
    sequences, group = page_table.shape[0], heads // kv_heads
    queries, rows = BLOCK_M // group, min(page_size, TILE)
    dtype = DTYPES[query.dtype]
    items = (tokens // queries + sequences) * kv_heads
    of_query = gl.NVMMASharedLayout(swizzle_byte_width=128, element_bitwidth=16, rank=3)
    of_pages = gl.NVMMASharedLayout.get_default_for([rows, HALF_D], dtype)
    page_rows = key_cache.stride(0) // key_cache.stride(1)
    height, width = (pages - 1) * page_rows + page_size, (kv_heads - 1) * key_cache.stride(2) + 2 * HALF_D
    keys, values = (
        TensorDescriptor(cache, [height, width], [cache.stride(1), 1], [rows, HALF_D], of_pages)
        for cache in (key_cache, value_cache)
    )
    block = [queries // 2, group, HALF_D]
    launch(
        _attend_prompts_kernel,
        (min(items, programs * multiprocessors(query)) or items,),
        query=TensorDescriptor(query, list(query.shape), list(query.stride()), block, of_query),
        keys=keys,
        values=values,
        page_table=page_table,
        cumulative_query_lengths=tensors["cumulative_query_lengths"],
        sequence_lengths=tensors["sequence_lengths"],
        out=out,
        sequences=sequences,
        capacity=page_table.shape[1] * page_size,
        above=above,
        scale=scale,
        kv_head_stride=key_cache.stride(2),
        table_stride=page_table.stride(0),
        out_stride=out.stride(0),
        out_head_stride=out.stride(1),
        page_rows=page_rows,
        outside=height,
        KV_HEADS=kv_heads,
        QUERIES=queries,
        HEADS=group,
        TILE=TILE,
        HALF_D=HALF_D,
        ROWS=rows,
        PAGE_SIZE=page_size,
        STAGES=STAGES,
        SINGLE=sequences == 1,
        num_warps=4,
    )


def fits(query: torch.Tensor, key_cache: torch.Tensor, value_cache: torch.Tensor) -> bool:
    """Whether TMA can load from these: aligned, the heads within a position, pages a number of positions apart.

    So are those of caches of their own, and of one in which pages of keys and of values alternate.
    """
    tensors = (query, key_cache, value_cache)
    aligned = all(
        tensor.data_ptr() % ALIGNMENT == 0
        and all(stride * tensor.itemsize % ALIGNMENT == 0 and stride > 0 for stride in tensor.stride()[:-1])
        for tensor in tensors
    )
    (pages, page_size, kv_heads, head_dim), (page, position, head, _) = key_cache.shape, key_cache.stride()
    within = (kv_heads - 1) * head + head_dim <= position and page_size * position <= page
    return aligned and within and pages > 0 and page % position == 0 and pages * (page // position) < 2**31 - TILE
