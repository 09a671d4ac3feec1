"""The product with scales by blocks for Hopper, in Gluon: one warp loads, two warpgroups multiply and scale.

It computes what ``_scaled_mm_blockwise_kernel`` computes, to the bit. There, all warps wait for the product of a block
before they scale it, and the tensor cores are idle meanwhile. Here the two warpgroups run independently: one scales
while the other one multiplies. So do CUTLASS's and DeepGEMM's kernels of this product.
"""

from __future__ import annotations

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
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels_smoke.launch import multiprocessors
from kernels_smoke.launch_plan import launch
from kernels_smoke.matmul.tiles import _place

DTYPES = {
    torch.float8_e4m3fn: gl.float8e4nv,
    torch.bfloat16: gl.bfloat16,
    torch.float16: gl.float16,
    torch.float32: gl.float32,
}


@gluon.jit
def _load(
    a, b, buffers, sizes,
    BLOCK: gl.constexpr, BLOCK_M: gl.constexpr, GROUP_M: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # descriptors, buffers and their barriers, sizes, constants
    """The warp that loads: the blocks of all tiles of this program, each as soon as a stage is free."""
    full, empty, tiles_a, tiles_b = buffers
    m, n, k = sizes
    tiles_m = gl.cdiv(m, BLOCK_M)
    tiles_n = gl.cdiv(n, 2 * BLOCK)
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = _place(tile, tiles_m, tiles_n, GROUP_M)
        for start_k in range(0, k, BLOCK):
            stage = step % STAGES
            mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)
            mbarrier.expect(full.index(stage), (BLOCK_M + 2 * BLOCK) * BLOCK)
            # [BLOCK_M, BLOCK], then [2 * BLOCK, BLOCK]
            tma.async_copy_global_to_shared(a, [tile_m * BLOCK_M, start_k], full.index(stage), tiles_a.index(stage))
            tma.async_copy_global_to_shared(b, [tile_n * 2 * BLOCK, start_k], full.index(stage), tiles_b.index(stage))
            step += 1


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
def _store(out, acc, staged, row, column):
    """Store a part of a tile through shared memory; other work goes on meanwhile."""
    tma.store_wait(0)  # until the part before has been read
    staged.store(acc.to(out.dtype))  # [BLOCK_M / 2, BLOCK]
    fence_async_shared()
    tma.async_copy_shared_to_global(out, [row, column], staged)


@gluon.jit
def _multiply(
    scales, out, staged, buffers, sizes,
    PART: gl.constexpr, BLOCK: gl.constexpr, BLOCK_M: gl.constexpr, GROUP_M: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # scales and their strides, the result and where it is staged, buffers and barriers, sizes, constants
    """A warpgroup that multiplies: the upper (``PART`` 0) or the lower half of the rows of each tile."""
    scale_a, scale_b, scale_a_stride_m, scale_a_stride_k, scale_b_stride_k, scale_b_stride_n = scales
    full, empty, tiles_a, tiles_b = buffers
    m, n, k = sizes
    half: gl.constexpr = BLOCK_M // 2
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK, 32])
    tiles_m = gl.cdiv(m, BLOCK_M)
    tiles_n = gl.cdiv(n, 2 * BLOCK)
    # All products share their registers: each is "added to the one before, if never". The compiler would take other
    # registers for one that begins with zero.
    product = gl.zeros([half, BLOCK], gl.float32, layout)
    never = k < 0
    step = 0
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = _place(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M + PART * half
        column = tile_n * 2 * BLOCK
        right = column + BLOCK < n  # whether there is a right half
        offs_m = row + gl.arange(0, half, gl.SliceLayout(1, layout))
        row_scales = scale_a + offs_m * scale_a_stride_m
        left_scales = scale_b + column // BLOCK * scale_b_stride_n
        # The scales of a block are loaded one block ahead.
        row_scale = gl.load(row_scales, mask=offs_m < m, other=0.0)  # [half]
        left_scale = gl.load(left_scales)  # [1]
        right_scale = gl.load(left_scales + scale_b_stride_n, mask=right, other=0.0)  # [1]
        acc_left = gl.zeros([half, BLOCK], gl.float32, layout)
        acc_right = gl.zeros([half, BLOCK], gl.float32, layout)
        for start_k in range(0, k, BLOCK):
            more = start_k + BLOCK < k
            row_scales += scale_a_stride_k
            left_scales += scale_b_stride_k
            next_row_scale = gl.load(row_scales, mask=offs_m < gl.where(more, m, 0), other=0.0)  # [half]
            next_left_scale = gl.load(left_scales, mask=more, other=0.0)  # [1]
            next_right_scale = gl.load(left_scales + scale_b_stride_n, mask=more & right, other=0.0)  # [1]
            stage = step % STAGES
            mbarrier.wait(full.index(stage), step // STAGES & 1)
            tile_a = tiles_a.index(stage).slice(PART * half, half)  # [half, BLOCK]
            columns = tiles_b.index(stage).slice(0, BLOCK).permute((1, 0))  # [BLOCK, BLOCK]
            product = warpgroup_mma(tile_a, columns, product, use_acc=never, is_async=True)  # [half, BLOCK]
            product = warpgroup_mma_wait(0, deps=[product])
            acc_left = _scale(product, row_scale * left_scale, acc_left)
            columns = tiles_b.index(stage).slice(BLOCK, BLOCK).permute((1, 0))  # [BLOCK, BLOCK]
            product = warpgroup_mma(tile_a, columns, product, use_acc=never, is_async=True)  # [half, BLOCK]
            product = warpgroup_mma_wait(0, deps=[product])
            mbarrier.arrive(empty.index(stage))
            acc_right = _scale(product, row_scale * right_scale, acc_right)
            row_scale, left_scale, right_scale = next_row_scale, next_left_scale, next_right_scale
            step += 1
        _store(out, acc_left, staged.index(PART), row, column)
        _store(out, acc_right, staged.index(PART), row, column + BLOCK)
    tma.store_wait(0)


@gluon.jit
def _specialized_blockwise_kernel(
    a, b, scale_a, scale_b, out, m, n, k, scale_a_stride_m, scale_a_stride_k, scale_b_stride_k, scale_b_stride_n,
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
    scales = (scale_a, scale_b, scale_a_stride_m, scale_a_stride_k, scale_b_stride_k, scale_b_stride_n)
    sizes = (m, n, k)
    # 240 registers for each thread that holds two sums and a product of 64 x 128; 24 for each of the warp that loads.
    gl.warp_specialize(
        [
            (_multiply, (scales, out, staged, buffers, sizes, 0, BLOCK, BLOCK_M, GROUP_M, STAGES)),
            (_multiply, (scales, out, staged, buffers, sizes, 1, BLOCK, BLOCK_M, GROUP_M, STAGES)),
            (_load, (a, b, buffers, sizes, BLOCK, BLOCK_M, GROUP_M, STAGES)),
        ],
        [4, 1],
        [240, 24],
    )


def multiply_blocks(
    a: torch.Tensor,
    rows: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    out: torch.Tensor,
    *,
    block: int,
    block_m: int,
    group_m: int,
    stages: int,
) -> None:
    """Write into ``out`` what ``scaled_mm_blockwise`` returns, in tiles of ``block_m`` rows and two blocks of columns.

    The arguments have been checked, ``rows`` is b transposed, and descriptors can be made of all three matrices. With
    a result of 4 bytes an element there is one stage less.
    """
    (m, k), n = a.shape, rows.shape[0]
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, 2 * block)
    launch(
        _specialized_blockwise_kernel,
        (min(tiles, multiprocessors(a)),),
        a=_descriptor(a, block_m, block),
        b=_descriptor(rows, 2 * block, block),
        scale_a=scale_a,
        scale_b=scale_b,
        out=_descriptor(out, block_m // 2, block),
        m=m,
        n=n,
        k=k,
        scale_a_stride_m=scale_a.stride(0),
        scale_a_stride_k=scale_a.stride(1),
        scale_b_stride_k=scale_b.stride(0),
        scale_b_stride_n=scale_b.stride(1),
        BLOCK=block,
        BLOCK_M=block_m,
        GROUP_M=group_m,
        STAGES=stages if out.itemsize == 2 else stages - 1,
        num_warps=4,
    )


def _descriptor(matrix: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """The descriptor of ``matrix`` for tiles of [rows, columns], swizzled as tensor cores read them."""
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], DTYPES[matrix.dtype])
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), [rows, columns], layout)
