"""The products of Newton-Schulz iterations, for a batch of matrices that are below one another in workspaces.

Of a product that is symmetric, only the tiles on and below the diagonal are computed, and stored twice.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import multiprocessors
from kernels_smoke.launch_plan import launch
from kernels_smoke.matmul.tiles import _load_tile, _place, _store_tile, described, descriptor


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
def _load_right(
    y, matrix, matrices, k, column, rows, inner, columns,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, SYMMETRIC: tl.constexpr, DESCRIBE: tl.constexpr,
):  # fmt: skip
    """The tile [BLOCK_K, BLOCK_N] of the right operand: y, or y transposed."""
    if SYMMETRIC:
        row = matrix * rows + column
        # [BLOCK_N, BLOCK_K], transposed
        right = _load_tile(y, row, k, matrices * rows, inner, inner, BLOCK_N, BLOCK_K, DESCRIBE).T
    else:
        row = matrix * inner + k
        # [BLOCK_K, BLOCK_N]
        right = _load_tile(y, row, column, matrices * inner, columns, columns, BLOCK_K, BLOCK_N, DESCRIBE)
    return right


@triton.jit
def _scaled(acc, alpha):
    """``alpha acc``, or ``acc`` where alpha is None."""
    return acc if alpha is None else acc * alpha


@triton.jit
def _identity(gamma, row, column, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """The tile [ROWS, COLUMNS] of gamma I."""
    return tl.where(row + tl.arange(0, ROWS)[:, None] == column + tl.arange(0, COLUMNS)[None, :], gamma, 0.0)


@triton.jit
def _store_unpadded(out, tile, matrix, row, column, rows, columns, stride, row_stride, column_stride):
    """Store what of ``tile`` is no padding, in the strides of the result, which may be those of its transpose."""
    offs_m = (row + tl.arange(0, tile.shape[0])).to(tl.int64)
    offs_n = (column + tl.arange(0, tile.shape[1])).to(tl.int64)
    inside = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
    pointers = out + matrix.to(tl.int64) * stride + offs_m[:, None] * row_stride + offs_n[None, :] * column_stride
    tl.store(pointers, tile.to(out.dtype.element_ty), mask=inside)


@triton.jit
def _product_kernel(
    x, y, addend, out, matrices, rows, inner, columns, alpha, beta, gamma, out_rows, out_columns,
    out_stride, out_row_stride, out_column_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr, HALVES: tl.constexpr,
    SYMMETRIC: tl.constexpr, PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # out = alpha x y + beta addend + gamma I, for x [matrices * rows, inner], y [matrices * inner, columns] and the
    # others [matrices * rows, columns]. A symmetric product is x y^T, for y like x.
    tiles_m = rows // BLOCK_M
    tiles_n = columns // BLOCK_N
    count = tiles_m * (tiles_m + 1) // 2 if SYMMETRIC else tiles_m * tiles_n
    for tile in tl.range(tl.program_id(0), matrices * count, tl.num_programs(0), flatten=PERSISTENT):
        matrix = tile // count
        first = matrix * rows
        if SYMMETRIC:
            tile_m, tile_n = _place_in_triangle(tile % count)
        else:
            tile_m, tile_n = _place(tile % count, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, inner, BLOCK_K):
            # [BLOCK_M, BLOCK_K]
            left = _load_tile(x, first + row, k, matrices * rows, inner, inner, BLOCK_M, BLOCK_K, DESCRIBE)
            # [BLOCK_K, BLOCK_N]
            right = _load_right(
                y, matrix, matrices, k, column, rows, inner, columns, BLOCK_N, BLOCK_K, SYMMETRIC, DESCRIBE
            )
            acc = tl.dot(left, right, acc)  # [BLOCK_M, BLOCK_N]

        width: tl.constexpr = BLOCK_N // HALVES
        acc0, acc1 = acc, acc
        if HALVES == 2:
            acc0, acc1 = tl.split(acc.reshape(BLOCK_M, 2, width).permute(0, 2, 1))
        for half in tl.static_range(HALVES):
            edge = column + half * width
            result = _scaled(acc0 if half == 0 else acc1, alpha)
            if addend is not None:
                # [BLOCK_M, width]
                more = _load_tile(
                    addend, first + row, edge, matrices * rows, columns, columns, BLOCK_M, width, DESCRIBE
                )
                result += beta * more.to(tl.float32)
            if gamma is not None:
                result += _identity(gamma, row, edge, BLOCK_M, width)
            if LAST:
                _store_unpadded(
                    out, result, matrix, row, edge, out_rows, out_columns, out_stride, out_row_stride, out_column_stride
                )
            else:
                rounded = result.to(out.dtype if DESCRIBE else out.dtype.element_ty)
                _store_tile(out, rounded, first + row, edge, matrices * rows, columns, columns, DESCRIBE)
                if SYMMETRIC:
                    # Above the diagonal is the mirror image of what is below. On it, the same values are stored twice:
                    # a condition would keep Triton from loading the next tile meanwhile.
                    _store_tile(out, rounded.T, first + column, row, matrices * rows, columns, columns, DESCRIBE)


def product(
    tiles: Tiles,
    x: torch.Tensor,
    y: torch.Tensor,
    out: torch.Tensor,
    matrices: int,
    *,
    symmetric: bool = False,
    alpha: float | None = None,
    addend: torch.Tensor | None = None,
    beta: float = 0.0,
    gamma: float | None = None,
    last: bool = False,
) -> None:
    """``out = alpha x y + beta addend + gamma I`` of each matrix; ``alpha x y^T`` where that is ``symmetric``.

    What is None is left out. Workspaces are padded to whole tiles, and have all matrices below one another. The
    ``last`` result is [matrices, m, n], without padding, in any strides.
    """
    describe = described(x)
    rows, inner = x.shape[0] // matrices, x.shape[1]
    columns = rows if symmetric else y.shape[1]
    block_m, block_n, block_k, width = tiles.block_m, tiles.block_n, tiles.block_k, tiles.block_n // tiles.halves
    side = rows // block_m
    count = matrices * (side * (side + 1) // 2 if symmetric else side * (columns // block_n))
    (out_rows, out_columns), strides = (out.shape[1:], out.stride()) if last else ((rows, columns), (0, columns, 1))
    if describe:
        x, y = (
            descriptor(x, block_m, block_k),
            descriptor(y, *((block_n, block_k) if symmetric else (block_k, block_n))),
        )
    launch(
        _product_kernel,
        (programs(tiles, count, out),),
        x=x,
        y=y,
        addend=addend if addend is None or not describe else descriptor(addend, block_m, width),
        out=descriptor(out, block_m, width) if describe and not last else out,
        matrices=matrices,
        rows=rows,
        inner=inner,
        columns=columns,
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        out_rows=out_rows,
        out_columns=out_columns,
        out_stride=strides[0],
        out_row_stride=strides[1],
        out_column_stride=strides[2],
        BLOCK_M=block_m,
        BLOCK_N=block_n,
        BLOCK_K=block_k,
        GROUP_M=tiles.group_m,
        HALVES=tiles.halves,
        SYMMETRIC=symmetric,
        PERSISTENT=tiles.programs > 0,
        DESCRIBE=describe,
        LAST=last,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


def programs(tiles: Tiles, count: int, tensor: torch.Tensor) -> int:
    """How many programs work through ``count`` tiles. Without a GPU there are fewer than tiles, too."""
    return min(count, tiles.programs * multiprocessors(tensor, otherwise=3)) or count
