"""The product with scales by blocks for Hopper, in Gluon: one warp loads, two warpgroups multiply and scale.

It computes what ``_scaled_mm_blockwise_kernel`` computes, to the bit, and so for the rows of each group what
``grouped_mm_blockwise`` does. There, all warps wait for the product of a block before they scale it, and the tensor
cores are idle meanwhile. Here the two warpgroups run independently: one scales while the other one multiplies. So do
CUTLASS's and DeepGEMM's kernels of this product.
"""

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)

from kernels_smoke.launch import multiprocessors
from kernels_smoke.launch_plan import launch
from kernels_smoke.matmul.specialized_tiles import (
    _first_tile,
    _load,
    _next_tile,
    _store,
    descriptor,
)


@gluon.jit
def _scale(product, scale, acc):
    """``acc + product * scale``, by an instruction that stays in place.

    Moved behind the next product, it would keep this one in registers meanwhile, of which there are not enough.
    """
    return gl.inline_asm_elementwise(
        "fma.rn.f32 $0, $1, $2, $3;",
        "=f,f,f,f",
        [product, scale[:, None], acc],
        dtype=gl.float32,
        is_pure=False,
        pack=1,
    )


@gluon.jit
def _begin(
    tile, scales, groups, n, PART: gl.constexpr, BLOCK: gl.constexpr, HALF_M: gl.constexpr, layout: gl.constexpr
):
    """What this warpgroup has of ``tile``: whether both blocks of columns, its first row, the end of the group's rows,
    and its first column; then the scales of the first block of K, for rows and for two blocks of columns.

    Of a tile that is more than half full, it has one half of the rows (``PART``). Of another, it has the upper half,
    and one block of columns.
    """
    scale_a, scale_b, scale_a_stride_m, _, scale_b_stride_e, _, scale_b_stride_n = scales
    group, end, first_row, tile_n, _turn, _start, _last = tile
    wide = end - first_row > HALF_M
    row = first_row + gl.where(wide, PART * HALF_M, 0)
    column = tile_n * 2 * BLOCK + gl.where(wide, 0, PART * BLOCK)
    exists = group < groups
    offs_m = row + gl.arange(0, HALF_M, gl.SliceLayout(1, layout))
    row_scales = scale_a + offs_m * scale_a_stride_m
    column_scales = scale_b + group * scale_b_stride_e + column // BLOCK * scale_b_stride_n
    row_scale = gl.load(row_scales, mask=offs_m < gl.where(exists, end, 0), other=0.0)  # [HALF_M]
    left_scale = gl.load(column_scales, mask=exists & (column < n), other=0.0)  # [1]
    right_scale = gl.load(column_scales + scale_b_stride_n, mask=exists & (column + BLOCK < n), other=0.0)  # [1]
    return wide, row, end, column, row_scale, left_scale, right_scale


@gluon.jit
def _multiply_tile(
    product, step, own, group, n, k, scales, buffers,
    PART: gl.constexpr, WIDE: gl.constexpr, BLOCK: gl.constexpr, HALF_M: gl.constexpr, STAGES: gl.constexpr,
    layout: gl.constexpr,
):  # fmt: skip  # registers for products, numbers, scales and their strides, buffers and barriers, constants
    """Multiply what ``_begin`` says; returns the product's registers, the sums of both blocks, and the next step."""
    scale_a, scale_b, scale_a_stride_m, scale_a_stride_k, scale_b_stride_e, scale_b_stride_k, scale_b_stride_n = scales
    full, empty, tiles_a, tiles_b = buffers
    _wide, row, end, column, row_scale, left_scale, right_scale = own
    upper: gl.constexpr = PART * HALF_M if WIDE else 0
    left: gl.constexpr = 0 if WIDE else PART * BLOCK
    never = k < 0
    offs_m = row + gl.arange(0, HALF_M, gl.SliceLayout(1, layout))
    row_scales = scale_a + offs_m * scale_a_stride_m
    left_scales = scale_b + group * scale_b_stride_e + column // BLOCK * scale_b_stride_n
    acc_left = gl.zeros([HALF_M, BLOCK], gl.float32, layout)
    acc_right = gl.zeros([HALF_M, BLOCK], gl.float32, layout)
    for start_k in range(0, k, BLOCK):
        # The scales of a block are loaded one block ahead.
        more = start_k + BLOCK < k
        row_scales += scale_a_stride_k
        left_scales += scale_b_stride_k
        next_row_scale = gl.load(row_scales, mask=offs_m < gl.where(more, end, 0), other=0.0)  # [HALF_M]
        next_left_scale = gl.load(left_scales, mask=more & (column < n), other=0.0)  # [1]
        stage = step % STAGES
        mbarrier.wait(full.index(stage), step // STAGES & 1)
        tile_a = tiles_a.index(stage).slice(upper, HALF_M)  # [HALF_M, BLOCK]
        columns = tiles_b.index(stage).slice(left, BLOCK).permute((1, 0))  # [BLOCK, BLOCK]
        product = warpgroup_mma(tile_a, columns, product, use_acc=never, is_async=True)  # [HALF_M, BLOCK]
        product = warpgroup_mma_wait(0, deps=[product])
        if WIDE:
            right = more & (column + BLOCK < n)
            next_right_scale = gl.load(left_scales + scale_b_stride_n, mask=right, other=0.0)  # [1]
            acc_left = _scale(product, row_scale * left_scale, acc_left)
            columns = tiles_b.index(stage).slice(BLOCK, BLOCK).permute((1, 0))  # [BLOCK, BLOCK]
            product = warpgroup_mma(tile_a, columns, product, use_acc=never, is_async=True)  # [HALF_M, BLOCK]
            product = warpgroup_mma_wait(0, deps=[product])
            mbarrier.arrive(empty.index(stage))
            acc_right = _scale(product, row_scale * right_scale, acc_right)
            right_scale = next_right_scale
        else:
            mbarrier.arrive(empty.index(stage))
            acc_left = _scale(product, row_scale * left_scale, acc_left)
        row_scale, left_scale = next_row_scale, next_left_scale
        step += 1
    return product, acc_left, acc_right, step


@gluon.jit
def _multiply(
    scales, out, rows, staged, offsets, buffers, sizes,
    PART: gl.constexpr, BLOCK: gl.constexpr, BLOCK_M: gl.constexpr, GROUP_M: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # scales and their strides, the result and where it is staged, groups, buffers, sizes, constants
    """A warpgroup that multiplies its part (``PART`` 0 or 1) of each tile."""
    m, n, k, groups, _ = sizes
    half: gl.constexpr = BLOCK_M // 2
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK, 32])
    tiles_n = gl.cdiv(n, 2 * BLOCK)
    tile = _first_tile(offsets, m, groups, tiles_n, BLOCK_M, GROUP_M)
    own = _begin(tile, scales, groups, n, PART, BLOCK, half, layout)
    # All products share their registers: each is "added to the one before, if never". The compiler would take other
    # registers for one that begins with zero.
    product = gl.zeros([half, BLOCK], gl.float32, layout)
    step = 0
    while tile[0] < groups:
        wide, row, end, column, _row_scale, _left_scale, _right_scale = own
        if wide:
            product, left, right, step = _multiply_tile(
                product, step, own, tile[0], n, k, scales, buffers, PART, True, BLOCK, half, STAGES, layout
            )
        else:
            product, left, right, step = _multiply_tile(
                product, step, own, tile[0], n, k, scales, buffers, PART, False, BLOCK, half, STAGES, layout
            )
        # The next tile is found, and its first scales are on their way, before this one is stored.
        tile = _next_tile(tile, offsets, groups, tiles_n, BLOCK_M, GROUP_M)
        own = _begin(tile, scales, groups, n, PART, BLOCK, half, layout)
        _store(out, left, staged.index(PART), row, column, rows, end, n)
        if wide:
            _store(out, right, staged.index(PART), row, column + BLOCK, rows, end, n)
    tma.store_wait(0)


@gluon.jit
def _specialized_blockwise_kernel(
    a, b, scale_a, scale_b, out, rows, offsets, m, n, k, groups, group_rows, scale_a_stride_m, scale_a_stride_k,
    scale_b_stride_e, scale_b_stride_k, scale_b_stride_n, out_stride,
    BLOCK: gl.constexpr, BLOCK_M: gl.constexpr, GROUP_M: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # descriptors, tensors, sizes, strides, constants
    tiles_a = gl.allocate_shared_memory(a.dtype, [STAGES, BLOCK_M, BLOCK], a.layout)
    tiles_b = gl.allocate_shared_memory(b.dtype, [STAGES, 2 * BLOCK, BLOCK], b.layout)
    staged = gl.allocate_shared_memory(out.dtype, [2, BLOCK_M // 2, BLOCK], out.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=2)
    fence_async_shared()
    buffers = (full, empty, tiles_a, tiles_b)
    scales = (
        scale_a, scale_b, scale_a_stride_m, scale_a_stride_k, scale_b_stride_e, scale_b_stride_k, scale_b_stride_n
    )  # fmt: skip
    sizes = (m, n, k, groups, group_rows)
    by_rows = (rows, out_stride)
    # 240 registers for each thread that holds two sums and a product of 64 x 128; 24 for each of the warp that loads.
    gl.warp_specialize(
        [
            (_multiply, (scales, out, by_rows, staged, offsets, buffers, sizes, 0, BLOCK, BLOCK_M, GROUP_M, STAGES)),
            (_multiply, (scales, out, by_rows, staged, offsets, buffers, sizes, 1, BLOCK, BLOCK_M, GROUP_M, STAGES)),
            (_load, (a, b, offsets, buffers, sizes, BLOCK_M, 2 * BLOCK, BLOCK, GROUP_M, STAGES)),
        ],
        [4, 1],
        [240, 24],
    )


def multiply_blocks(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    out: torch.Tensor,
    *,
    block: int,
    block_m: int,
    group_m: int,
    stages: int,
    offsets: torch.Tensor | None = None,
    group_rows: int = 0,
) -> None:
    """Write ``a @ b.T`` with its scales into ``out`` [M, N], by tiles of ``block_m`` rows and two blocks of columns.

    ``a`` is [M, K], and ``b`` [N, K]. With ``offsets``, rows are in groups, each with its own matrix in ``b``, which
    begins ``group_rows`` rows after the one before. ``scale_a`` is [M, blocks of K], ``scale_b`` [groups, blocks of N,
    blocks of K]. The arguments have been checked, and descriptors can be made of all three matrices. With a result of
    4 bytes an element there is one stage less.
    """
    (m, k), n = a.shape, out.shape[1]
    most = triton.cdiv(m, block_m) + (len(scale_b) - 1)
    launch(
        _specialized_blockwise_kernel,
        (min(most * triton.cdiv(n, 2 * block), multiprocessors(a)),),
        a=descriptor(a, block_m, block),
        b=descriptor(b, 2 * block, block),
        scale_a=scale_a,
        scale_b=scale_b,
        out=descriptor(out, block_m // 2, block),
        rows=None if offsets is None else out,
        offsets=offsets,
        m=m,
        n=n,
        k=k,
        groups=len(scale_b),
        group_rows=group_rows,
        scale_a_stride_m=scale_a.stride(0),
        scale_a_stride_k=scale_a.stride(1),
        scale_b_stride_e=scale_b.stride(0),
        scale_b_stride_n=scale_b.stride(1),
        scale_b_stride_k=scale_b.stride(2),
        out_stride=out.stride(0),
        BLOCK=block,
        BLOCK_M=block_m,
        GROUP_M=group_m,
        STAGES=stages if out.itemsize == 2 else stages - 1,
        num_warps=4,
    )
