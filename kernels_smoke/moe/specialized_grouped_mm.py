"""The grouped product in 16 bits for Hopper, in Gluon: one warp loads, two warpgroups multiply.

It computes what ``_grouped_kernel`` computes. There, a program has one tile, and nothing is multiplied while a tile is
stored. Here programs work through all tiles: while one warpgroup stores its half of a tile, the other one multiplies,
and the next tile comes.
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
from kernels_smoke.matmul.specialized_tiles import _first_tile, _load, _next_tile, _store, descriptor


@gluon.jit
def _multiply(
    out, rows, staged, offsets, buffers, sizes,
    PART: gl.constexpr, BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr,
    STAGES: gl.constexpr,
):  # fmt: skip  # the result and where it is staged, where groups begin, buffers and barriers, sizes, constants
    """A warpgroup that multiplies: the upper (``PART`` 0) or the lower half of the rows of each tile, if it has any."""
    full, empty, tiles_a, tiles_b = buffers
    m, n, k, groups, _ = sizes
    half: gl.constexpr = BLOCK_M // 2
    layout: gl.constexpr = gl.NVMMADistributedLayout(
        version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BLOCK_N, 16]
    )
    tiles_n = gl.cdiv(n, BLOCK_N)
    tile = _first_tile(offsets, m, groups, tiles_n, BLOCK_M, GROUP_M)
    step = 0
    while tile[0] < groups:
        _group, end, first_row, tile_n, _turn, _start, _last = tile
        row = first_row + PART * half
        column = tile_n * BLOCK_N
        acc = gl.zeros([half, BLOCK_N], gl.float32, layout)
        if row < end:
            for start_k in range(0, k, BLOCK_K):
                stage = step % STAGES
                mbarrier.wait(full.index(stage), step // STAGES & 1)
                tile_a = tiles_a.index(stage).slice(PART * half, half)  # [half, BLOCK_K]
                columns = tiles_b.index(stage).permute((1, 0))  # [BLOCK_K, BLOCK_N]
                acc = warpgroup_mma(tile_a, columns, acc, is_async=True)  # [half, BLOCK_N]
                acc = warpgroup_mma_wait(1, deps=[acc])  # until the product of the step before is done
                mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES), pred=start_k > 0)
                step += 1
            acc = warpgroup_mma_wait(0, deps=[acc])
            mbarrier.arrive(empty.index((step + STAGES - 1) % STAGES))
        else:
            for _ in range(0, k, BLOCK_K):
                mbarrier.wait(full.index(step % STAGES), step // STAGES & 1)
                mbarrier.arrive(empty.index(step % STAGES))
                step += 1
        tile = _next_tile(tile, offsets, groups, tiles_n, BLOCK_M, GROUP_M)
        if row < end:
            left, right = acc.reshape([half, 2, BLOCK_N // 2]).permute((0, 2, 1)).split()
            _store(out, left, staged.index(PART), row, column, rows, end, n)
            _store(out, right, staged.index(PART), row, column + BLOCK_N // 2, rows, end, n)
    tma.store_wait(0)


@gluon.jit
def _specialized_grouped_kernel(
    a, b, out, rows, offsets, m, n, k, groups, group_rows, out_stride,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # descriptors, tensors, sizes, strides, constants
    tiles_a = gl.allocate_shared_memory(a.dtype, [STAGES, BLOCK_M, BLOCK_K], a.layout)
    tiles_b = gl.allocate_shared_memory(b.dtype, [STAGES, BLOCK_N, BLOCK_K], b.layout)
    staged = gl.allocate_shared_memory(out.dtype, [2, BLOCK_M // 2, BLOCK_N // 2], out.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for stage in gl.static_range(STAGES):
        mbarrier.init(full.index(stage), count=1)
        mbarrier.init(empty.index(stage), count=2)
    fence_async_shared()
    buffers = (full, empty, tiles_a, tiles_b)
    sizes = (m, n, k, groups, group_rows)
    by_rows = (rows, out_stride)
    # 240 registers for each thread that holds a sum of 64 x 256; 24 for each of the warp that loads.
    gl.warp_specialize(
        [
            (_multiply, (out, by_rows, staged, offsets, buffers, sizes, 0, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES)),
            (_multiply, (out, by_rows, staged, offsets, buffers, sizes, 1, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES)),
            (_load, (a, b, offsets, buffers, sizes, BLOCK_M, BLOCK_N, BLOCK_K, GROUP_M, STAGES)),
        ],
        [4, 1],
        [240, 24],
    )


def multiply_groups_specialized(
    a: torch.Tensor,
    b: torch.Tensor,
    offsets: torch.Tensor,
    out: torch.Tensor,
    *,
    group_rows: int,
    block_m: int,
    block_n: int,
    block_k: int,
    group_m: int,
    stages: int,
) -> None:
    """Write ``grouped_mm`` of ``a`` [M, K] into ``out`` [M, N].

    ``b`` has the matrices of all groups; each begins ``group_rows`` rows after the one before.
    The arguments have been checked, and descriptors can be made of all three matrices. With a result of 4 bytes an
    element there is one stage less.
    """
    (m, k), n, groups = a.shape, out.shape[1], offsets.shape[0] - 1
    tiles = (triton.cdiv(m, block_m) + groups - 1) * triton.cdiv(n, block_n)
    launch(
        _specialized_grouped_kernel,
        (min(tiles, multiprocessors(a)),),
        a=descriptor(a, block_m, block_k),
        b=descriptor(b, block_n, block_k),
        out=descriptor(out, block_m // 2, block_n // 2),
        rows=out,
        offsets=offsets,
        m=m,
        n=n,
        k=k,
        groups=groups,
        group_rows=group_rows,
        out_stride=out.stride(0),
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=group_m,
        STAGES=stages if out.itemsize == 2 else stages - 1,
        num_warps=4,
    )
