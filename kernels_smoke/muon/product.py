"""A matrix times its own transpose: only the tiles on and below the diagonal are computed, and stored twice."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import multiprocessors
from kernels_smoke.launch_plan import launch
from kernels_smoke.matmul.tiles import _load_tile, _store_tile, described, descriptor


@dataclass(frozen=True)
class Tiles:
    """How one product is laid out.

    - ``block_m``, ``block_n``: rows and columns of a tile of the result; ``block_k``: elements of a row in one step.
    - ``group_m``: rows of tiles that are computed together. ``warps``, ``stages``: of one program.
    - ``halves``: 2 stores a tile in two steps, in half of the shared memory. The symmetric products need neither.
    - ``programs``: for each multiprocessor, which then work through all tiles; 0 is one program for each tile.
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    warps: int
    stages: int
    halves: int = 1
    programs: int = 0


@triton.jit
def _place_in_triangle(tile):
    """Row and column of a tile of the lower triangle, whose tiles are counted row by row: 0 | 1 2 | 3 4 5."""
    row = ((tl.sqrt(8.0 * tile + 1.0) - 1.0) * 0.5).to(tl.int32)
    row += (row + 1) * (row + 2) // 2 <= tile  # the root is rounded: at most one off
    row -= row * (row + 1) // 2 > tile
    return row, tile - row * (row + 1) // 2


@triton.jit
def _symmetric_kernel(
    x, addend, out, matrices, rows, columns, alpha, beta,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # out = alpha x x^T + beta addend, for x [matrices * rows, columns], the others [matrices * rows, rows].
    side = rows // BLOCK
    triangle = side * (side + 1) // 2
    for tile in tl.range(tl.program_id(0), matrices * triangle, tl.num_programs(0), flatten=PERSISTENT):
        first = tile // triangle * rows
        tile_m, tile_n = _place_in_triangle(tile % triangle)
        row = tile_m * BLOCK
        column = tile_n * BLOCK
        acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        for k in range(0, columns, BLOCK_K):
            # [BLOCK, BLOCK_K]
            left = _load_tile(x, first + row, k, matrices * rows, columns, columns, BLOCK, BLOCK_K, DESCRIBE)
            # [BLOCK, BLOCK_K]
            right = _load_tile(x, first + column, k, matrices * rows, columns, columns, BLOCK, BLOCK_K, DESCRIBE)
            acc = tl.dot(left, right.T, acc)  # [BLOCK, BLOCK]

        result = acc * alpha
        if addend is not None:
            # [BLOCK, BLOCK]
            more = _load_tile(addend, first + row, column, matrices * rows, rows, rows, BLOCK, BLOCK, DESCRIBE)
            result += beta * more.to(tl.float32)
        rounded = result.to(out.dtype if DESCRIBE else out.dtype.element_ty)
        _store_tile(out, rounded, first + row, column, matrices * rows, rows, rows, DESCRIBE)
        # Above the diagonal is the mirror image of what is below. On it, the same values are stored twice: a condition
        # would keep Triton from loading the next tile meanwhile.
        _store_tile(out, rounded.T, first + column, row, matrices * rows, rows, rows, DESCRIBE)


def symmetric(
    tiles: Tiles,
    x: torch.Tensor,
    addend: torch.Tensor | None,
    out: torch.Tensor,
    matrices: int,
    alpha: float,
    beta: float,
) -> None:
    """``out = alpha x x^T + beta addend`` of each matrix."""
    describe = described(x)
    rows, block = out.shape[1], tiles.block_m
    side = rows // block
    count = matrices * side * (side + 1) // 2
    launch(
        _symmetric_kernel,
        (programs(tiles, count, x),),
        x=descriptor(x, block, tiles.block_k) if describe else x,
        addend=addend if addend is None or not describe else descriptor(addend, block, block),
        out=descriptor(out, block, block) if describe else out,
        matrices=matrices,
        rows=rows,
        columns=x.shape[1],
        alpha=alpha,
        beta=beta,
        BLOCK=block,
        BLOCK_K=tiles.block_k,
        PERSISTENT=tiles.programs > 0,
        DESCRIBE=describe,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


def programs(tiles: Tiles, count: int, tensor: torch.Tensor) -> int:
    """How many programs work through ``count`` tiles. Without a GPU there are fewer than tiles, too."""
    return min(count, tiles.programs * multiprocessors(tensor, otherwise=3)) or count
