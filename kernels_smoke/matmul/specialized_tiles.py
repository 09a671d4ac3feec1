"""What products for Hopper in Gluon share: which tiles a program computes, and how tiles are loaded and stored.

Their warps have roles: one loads by TMA, two warpgroups multiply. Each finds the tiles of its program by itself. Rows
may be in groups, each with its own matrix; a product of two matrices is that of one group.
"""

import torch
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import fence_async_shared, mbarrier, tma
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernels_smoke.matmul.tiles import _place

DTYPES = {
    torch.float8_e4m3fn: gl.float8e4nv,
    torch.bfloat16: gl.bfloat16,
    torch.float16: gl.float16,
    torch.float32: gl.float32,
}


@gluon.jit
def _turns(rows, tiles_n, BLOCK_M: gl.constexpr):
    """Of a group of ``rows`` rows: the rows of tiles that are more than half full, and the turns of all its tiles.

    A turn is one tile, or two neighbouring ones that are at most half full: each of these has half of the products.
    """
    tall = (rows + BLOCK_M // 2 - 1) // BLOCK_M
    return tall, tall * tiles_n + gl.where(rows > tall * BLOCK_M, gl.cdiv(tiles_n, 2), 0)


@gluon.jit
def _group_of(turn, group, start, end, offsets, groups, tiles_n, BLOCK_M: gl.constexpr):
    """From ``turn`` of ``group``, whose rows are from ``start`` to ``end``: its number in its group, and that group.

    The group is ``groups`` for a turn behind the last one. ``offsets`` is None for a single group.
    """
    _, turns = _turns(end - start, tiles_n, BLOCK_M)
    while (turn >= turns) & (group < groups):
        turn -= turns
        group += 1
        if offsets is not None:
            start = end
            end = gl.load(offsets + group + 1, mask=group < groups, other=0).to(gl.int32)  # [1]
            _, turns = _turns(end - start, tiles_n, BLOCK_M)
    return turn, group, start, end


@gluon.jit
def _tiles_of(turn, start, end, tiles_n, BLOCK_M: gl.constexpr, GROUP_M: gl.constexpr):
    """The first row of the tiles of a group's ``turn``, its first tile and the one behind its last."""
    tall, _ = _turns(end - start, tiles_n, BLOCK_M)
    behind = turn - tall * tiles_n
    if behind < 0:
        tile_m, tile_n = _place(turn, tall, tiles_n, GROUP_M)
        last = tile_n + 1
    else:
        tile_m, tile_n = tall, 2 * behind
        last = min(tile_n + 2, tiles_n)
    return start + tile_m * BLOCK_M, tile_n, last


@gluon.jit
def _first_tile(offsets, m, groups, tiles_n, BLOCK_M: gl.constexpr, GROUP_M: gl.constexpr):
    """The first tile of this program: see ``_next_tile``."""
    start, end = gl.to_tensor(0), gl.to_tensor(m)
    if offsets is not None:
        start = gl.load(offsets).to(gl.int32)  # [1]
        end = gl.load(offsets + 1).to(gl.int32)  # [1]
    turn, group, start, end = _group_of(
        gl.program_id(0), gl.to_tensor(0), start, end, offsets, groups, tiles_n, BLOCK_M
    )
    row, tile_n, last = _tiles_of(turn, start, end, tiles_n, BLOCK_M, GROUP_M)
    return group, end, row, tile_n, turn, start, last


@gluon.jit
def _next_tile(tile, offsets, groups, tiles_n, BLOCK_M: gl.constexpr, GROUP_M: gl.constexpr):
    """The tile of this program that follows ``tile``: its group, where the rows of that end, its first row, its number
    among the tiles of these rows, and what finds the next one. Behind the last tile, the group is ``groups``.
    """
    group, end, row, tile_n, turn, start, last = tile
    tile_n += 1
    if tile_n == last:
        turn, group, start, end = _group_of(
            turn + gl.num_programs(0), group, start, end, offsets, groups, tiles_n, BLOCK_M
        )
        row, tile_n, last = _tiles_of(turn, start, end, tiles_n, BLOCK_M, GROUP_M)
    return group, end, row, tile_n, turn, start, last


@gluon.jit
def _load(
    a, b, offsets, buffers, sizes,
    BLOCK_M: gl.constexpr, BLOCK_N: gl.constexpr, BLOCK_K: gl.constexpr, GROUP_M: gl.constexpr, STAGES: gl.constexpr,
):  # fmt: skip  # descriptors, where groups begin, buffers and their barriers, sizes, constants
    """The warp that loads: the steps of all tiles of this program, each as soon as a stage is free."""
    full, empty, tiles_a, tiles_b = buffers
    m, n, k, groups, group_rows = sizes
    tiles_n = gl.cdiv(n, BLOCK_N)
    tile = _first_tile(offsets, m, groups, tiles_n, BLOCK_M, GROUP_M)
    step = 0
    while tile[0] < groups:
        group, _end, row, tile_n, _turn, _start, _last = tile
        b_row = group * group_rows + tile_n * BLOCK_N
        for start_k in range(0, k, BLOCK_K):
            stage = step % STAGES
            mbarrier.wait(empty.index(stage), (step // STAGES & 1) ^ 1)
            mbarrier.expect(full.index(stage), (BLOCK_M + BLOCK_N) * BLOCK_K * (a.dtype.primitive_bitwidth // 8))
            # [BLOCK_M, BLOCK_K], then [BLOCK_N, BLOCK_K]
            tma.async_copy_global_to_shared(a, [row, start_k], full.index(stage), tiles_a.index(stage))
            tma.async_copy_global_to_shared(b, [b_row, start_k], full.index(stage), tiles_b.index(stage))
            step += 1
        tile = _next_tile(tile, offsets, groups, tiles_n, BLOCK_M, GROUP_M)


@gluon.jit
def _store(out, part, staged, row, column, rows, end, n):
    """Store a part of a tile through shared memory; other work goes on meanwhile.

    ``rows`` are the result and the distance of its rows where rows from ``end`` on belong to others, otherwise None
    and 0. TMA leaves out what is outside the result, but no rows within it: threads store a part with such rows.
    """
    target, stride = rows
    whole = row < end
    if target is not None:
        whole = row + part.shape[0] <= end
        if not whole:
            layout: gl.constexpr = part.type.layout
            offs_m = row + gl.arange(0, part.shape[0], gl.SliceLayout(1, layout))
            offs_n = column + gl.arange(0, part.shape[1], gl.SliceLayout(0, layout))
            pointers = target + offs_m.to(gl.int64)[:, None] * stride + offs_n[None, :]
            gl.store(pointers, part.to(out.dtype), mask=(offs_m < end)[:, None] & (offs_n < n)[None, :])
    if whole:
        tma.store_wait(0)  # until the part before has been read
        staged.store(part.to(out.dtype))  # [ROWS, COLUMNS]
        fence_async_shared()
        tma.async_copy_shared_to_global(out, [row, column], staged)


def descriptor(matrix: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """The descriptor of ``matrix`` for tiles of [rows, columns], swizzled as tensor cores read them."""
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], DTYPES[matrix.dtype])
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), [rows, columns], layout)
