"""What both products share: the order of the tiles, and how a tile of a row-major matrix is loaded.

A tile comes through a tensor descriptor (one instruction of the tensor memory accelerator, TMA) where the GPU has that
and the matrix is aligned for it, and through masked pointers otherwise.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import architecture, check_rows, check_written, interpreted, require
from kernels_smoke.launch_plan import allocated

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # older than Triton 3.4, which has no descriptors made on the host: pointers do the same
    TensorDescriptor = None

OPERANDS = (torch.float8_e4m3fn, torch.bfloat16, torch.float16)
OUTPUTS = (torch.bfloat16, torch.float16, torch.float32)
LARGEST = 2**31 - 512  # of M, N and K: the last tile may reach beyond, in 32 bits
ALIGNMENT = 16  # bytes: TMA wants the first element and every row to begin at a multiple of this


@triton.jit
def _place(tile, tiles_m, tiles_n, GROUP_M: tl.constexpr):
    """Row and column of a tile: GROUP_M rows of tiles go column by column, so that L2 keeps what they share."""
    group = tile // (GROUP_M * tiles_n)
    within = tile % (GROUP_M * tiles_n)
    first = group * GROUP_M
    height = min(tiles_m - first, GROUP_M)
    return first + within % height, within // height


@triton.jit
def _load_tile(
    source, row, column, rows, columns, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DESCRIPTOR: tl.constexpr
):
    """The tile [ROWS, COLUMNS] that begins at (row, column); zero beyond the matrix [rows, columns]."""
    if DESCRIPTOR:
        tile = source.load([row, column])  # [ROWS, COLUMNS]
    else:
        offs_m = row + tl.arange(0, ROWS)
        offs_n = column + tl.arange(0, COLUMNS)
        inside = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
        # [ROWS, COLUMNS]
        tile = tl.load(source + offs_m.to(tl.int64)[:, None] * stride + offs_n[None, :], mask=inside, other=0.0)
    return tile


@triton.jit
def _store_tile(target, tile, row, column, rows, columns, stride, DESCRIPTOR: tl.constexpr):
    """Store what of ``tile`` is inside the matrix [rows, columns], from (row, column) on, rounded to its dtype."""
    if DESCRIPTOR:
        target.store([row, column], tile.to(target.dtype))
    else:
        offs_m = row + tl.arange(0, tile.shape[0])
        offs_n = column + tl.arange(0, tile.shape[1])
        inside = (offs_m < rows)[:, None] & (offs_n < columns)[None, :]
        pointers = target + offs_m.to(tl.int64)[:, None] * stride + offs_n[None, :]
        tl.store(pointers, tile.to(target.dtype.element_ty), mask=inside)


def described(matrix: torch.Tensor) -> bool:
    """Whether tiles of ``matrix`` can come and go through descriptors: TMA is there, and the rows are aligned."""
    # From sm_120 on, tensor cores take their operands from registers again: TMA has less to give there.
    there = interpreted() or 90 <= architecture().number < 120
    aligned = matrix.data_ptr() % ALIGNMENT == 0 and matrix.stride(0) * matrix.itemsize % ALIGNMENT == 0
    dense = matrix.stride(1) == 1 and matrix.stride(0) >= matrix.shape[1]
    return TensorDescriptor is not None and there and aligned and dense


def descriptor(matrix: torch.Tensor, rows: int, columns: int) -> object:
    """The descriptor of ``matrix`` for tiles of [rows, columns]."""
    return TensorDescriptor(matrix, list(matrix.shape), list(matrix.stride()), [rows, columns])


def check_operands(
    a: torch.Tensor, b: torch.Tensor, out_dtype: torch.dtype | None, out: torch.Tensor | None
) -> torch.Tensor:
    """Check a [M, K], b [K, N] and out [M, N], and return ``out``, which is allocated when it was not given.

    Raises ValueError when a shape, dtype, device or stride does not fit.
    """
    require(a.ndim == 2 and b.ndim == 2, f"a and b must be matrices, not {a.ndim}- and {b.ndim}-dimensional")
    (m, k), n = a.shape, b.shape[1]
    require(k > 0, "a and b have no elements to multiply: K is 0")
    require(max(m, n, k) < LARGEST, f"M, N and K must be less than {LARGEST}, not {m}, {n} and {k}")
    check_rows("a", a, (m, k), OPERANDS, a)
    check_rows("b transposed", b.t(), (n, k), (a.dtype,), a)
    require(out_dtype in {None, *OUTPUTS}, f"out_dtype must be {' or '.join(map(str, OUTPUTS))}, not {out_dtype}")
    if out is None:
        out = allocated(torch.empty((m, n), dtype=out_dtype or torch.bfloat16, device=a.device))
    check_rows("out", out, (m, n), (out_dtype,) if out_dtype else OUTPUTS, a)
    check_written("out", out)
    return out
