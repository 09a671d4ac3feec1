"""Matrices over their Frobenius norms, in a workspace that is padded with zeros to whole tiles."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import interpreted
from kernels_smoke.launch_plan import allocated, launch

SQUARE = 64  # rows and columns of a tile while a matrix is scaled, and perhaps transposed
EPSILON = 1e-7  # is added to the norm: a matrix of zeros stays one


@triton.jit
def _load_part(
    x,
    matrix,
    row,
    column,
    rows,
    columns,
    x_stride,
    row_stride,
    column_stride,
    ROWS: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    """The tile [ROWS, COLUMNS] of one matrix [rows, columns], in float32; zero beyond the matrix."""
    offs_m = (row + tl.arange(0, ROWS)).to(tl.int64)
    offs_n = (column + tl.arange(0, COLUMNS)).to(tl.int64)
    inside = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
    pointers = x + matrix * x_stride + offs_m[:, None] * row_stride + offs_n[None, :] * column_stride
    return tl.load(pointers, mask=inside, other=0.0).to(tl.float32)  # [ROWS, COLUMNS]


@triton.jit
def _square_sums_kernel(
    x, sums, rows, columns, x_stride, row_stride, column_stride, tiles_down, spans, span,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    # `sums` is [matrices, tiles_down * spans]: those of the squares in ROWS rows and `span` columns.
    part = tl.program_id(0)
    matrix = (part // (tiles_down * spans)).to(tl.int64)
    row = part // spans % tiles_down * ROWS
    first = part % spans * span
    acc = tl.zeros((ROWS, COLUMNS), tl.float32)
    for column in range(first, first + span, COLUMNS):
        # [ROWS, COLUMNS]
        values = _load_part(
            x, matrix, row, column, rows, columns, x_stride, row_stride, column_stride, ROWS, COLUMNS
        )  # fmt: skip
        acc += values * values
    tl.store(sums + part, tl.sum(acc))


@triton.jit
def _scale_kernel(
    x, sums, scaled, zeroed, rows, columns, x_stride, row_stride, column_stride, padded_rows, padded_columns, parts,
    epsilon, factor, zeros, SQUARE: tl.constexpr, PARTS: tl.constexpr,
):  # fmt: skip
    # Blocks beyond the matrix are written, too: with zeros, which change no product.
    tile = tl.program_id(0)
    if zeroed is not None:
        tl.store(zeroed + tile, 0, mask=tile < zeros)
    tiles_down = tl.cdiv(padded_rows, SQUARE)
    tiles_across = padded_columns // SQUARE
    matrix = (tile // (tiles_down * tiles_across)).to(tl.int64)
    row = tile // tiles_across % tiles_down * SQUARE
    column = tile % tiles_across * SQUARE
    # [SQUARE, SQUARE]
    values = _load_part(x, matrix, row, column, rows, columns, x_stride, row_stride, column_stride, SQUARE, SQUARE)
    number = tl.arange(0, PARTS)
    squares = tl.load(sums + matrix * parts + number, mask=number < parts, other=0.0)  # [PARTS]
    values = values / (tl.sqrt(tl.sum(squares)) + epsilon) * factor
    offs_m = (row + tl.arange(0, SQUARE)).to(tl.int64)
    offs_n = column + tl.arange(0, SQUARE)
    targets = scaled + (matrix * padded_rows + offs_m[:, None]) * padded_columns + offs_n[None, :]
    tl.store(targets, values.to(scaled.dtype.element_ty), mask=(offs_m < padded_rows)[:, None])


def scale_into(
    scaled: torch.Tensor, source: torch.Tensor, factor: float = 1.0, *, zeroed: torch.Tensor | None = None
) -> None:
    """``scaled = factor source / (||source|| + 1e-7)`` of each matrix.

    ``source`` is [matrices, p, q] in any strides; ``scaled`` is [matrices * rows, columns], where rows are at least p,
    and columns, a multiple of 64, are at least q. ``zeroed``, the counters of later launches, is filled with zeros: no
    more than there are tiles of 64 x 64.
    """
    matrices, p, q = source.shape
    rows, columns = scaled.shape[0] // matrices, scaled.shape[1]
    # Four programs for each multiprocessor of an H200. In the interpreter, small cases have several tiles and sums.
    block_m, block_n, programs = (16, 16, 4) if interpreted() else (64, 128, 528)
    tiles_down = triton.cdiv(p, block_m)
    span = triton.cdiv(q, max(programs // (matrices * tiles_down), 1) * block_n) * block_n
    spans = triton.cdiv(q, span)
    parts = tiles_down * spans
    sums = allocated(torch.empty((matrices, parts), dtype=torch.float32, device=source.device))
    matrix = {"x": source, "rows": p, "columns": q}
    strides = dict(zip(("x_stride", "row_stride", "column_stride"), source.stride(), strict=True))
    launch(
        _square_sums_kernel,
        (matrices * parts,),
        **matrix,
        **strides,
        sums=sums,
        tiles_down=tiles_down,
        spans=spans,
        span=span,
        ROWS=block_m,
        COLUMNS=block_n,
        num_warps=8,
    )
    launch(
        _scale_kernel,
        (matrices * triton.cdiv(rows, SQUARE) * (columns // SQUARE),),
        **matrix,
        **strides,
        sums=sums,
        scaled=scaled,
        zeroed=zeroed,
        padded_rows=rows,
        padded_columns=columns,
        parts=parts,
        epsilon=EPSILON,
        factor=factor,
        zeros=0 if zeroed is None else zeroed.numel(),
        SQUARE=SQUARE,
        PARTS=triton.next_power_of_2(parts),
        num_warps=4,
    )
