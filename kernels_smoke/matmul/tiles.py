"""What products share: their layout and launch, the order of the tiles, and how a tile of a row-major matrix is loaded.

A tile comes through a tensor descriptor (one instruction of the tensor memory accelerator, TMA) where the GPU has that
and the matrix is aligned for it, and through masked pointers otherwise.
"""

from dataclasses import dataclass
from typing import Any

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import architecture, check_rows, check_written, interpreted, multiprocessors, require
from kernels_smoke.launch_plan import allocated, launch

try:
    from triton.tools.tensor_descriptor import TensorDescriptor
except ImportError:  # older than Triton 3.4, which has no descriptors made on the host: pointers do the same
    TensorDescriptor = None

OPERANDS = (torch.float8_e4m3fn, torch.bfloat16, torch.float16)
OUTPUTS = (torch.bfloat16, torch.float16, torch.float32)
LARGEST = 2**31 - 512  # of M, N and K: the last tile may reach beyond, in 32 bits
ALIGNMENT = 16  # bytes: TMA wants the first element and every row to begin at a multiple of this


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    - ``block_m``, ``block_n``: rows and columns of a tile of the result; ``block_k``: bytes of a row in one step.
    - ``group_m``: rows of tiles that are computed together. ``warps``, ``stages``: of one program.
    - ``swapped``: compute the transposed tile. Tensor cores take at least 64 rows and as few as 8 columns, so a few
      rows of ``a`` go where the columns are.
    - ``halves``: 2 stores a tile in two steps, in half of the shared memory.
    - ``programs``: for each multiprocessor, which then work through all tiles; 0 is one program for each tile.
    - ``describe_out``: store through a descriptor where ``out`` is aligned.
    """

    block_m: int
    block_n: int
    block_k: int
    group_m: int
    warps: int
    stages: int
    swapped: bool = False
    halves: int = 1
    programs: int = 0
    describe_out: bool = False


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


@triton.jit
def _halves(tile, HALVES: tl.constexpr):
    """The left and the right half of ``tile`` [BLOCK_M, BLOCK_N]; with HALVES 1, twice the tile itself."""
    left, right = tile, tile
    if HALVES == 2:
        left, right = tl.split(tile.reshape(tile.shape[0], 2, tile.shape[1] // 2).permute(0, 2, 1))
    return left, right


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
    return check_result(out, (m, n), out_dtype, a)


def check_result(
    out: torch.Tensor | None, shape: tuple[int, int], out_dtype: torch.dtype | None, like: torch.Tensor
) -> torch.Tensor:
    """Check ``out``, and return it; allocate it when it was not given, in bfloat16 unless ``out_dtype`` says otherwise.

    Raises ValueError when its shape, dtype, device or stride does not fit.
    """
    require(out_dtype in {None, *OUTPUTS}, f"out_dtype must be {' or '.join(map(str, OUTPUTS))}, not {out_dtype}")
    if out is None:
        out = allocated(torch.empty(shape, dtype=out_dtype or torch.bfloat16, device=like.device))
    check_rows("out", out, shape, (out_dtype,) if out_dtype else OUTPUTS, like)
    check_written("out", out)
    return out


def launch_tiles(
    kernel: Any, choice: Configuration, a: torch.Tensor, b: torch.Tensor, out: torch.Tensor, **others: Any
) -> None:
    """Launch ``kernel`` for the tiles of ``out`` [M, N], from ``a`` [M, K] and ``b`` [N, K], laid out by ``choice``.

    ``others`` are the kernel's other arguments.
    """
    (m, k), n = a.shape, b.shape[0]
    describe = described(a) and described(b)
    describe_out = choice.describe_out and described(out)
    block_k = choice.block_k // a.itemsize
    tiles = triton.cdiv(m, choice.block_m) * triton.cdiv(n, choice.block_n)
    # Without a GPU there are fewer programs than tiles, too: the loop over tiles is interpreted as it will run.
    programs = min(tiles, choice.programs * multiprocessors(a, otherwise=3)) or tiles
    launch(
        kernel,
        (programs,),
        a=descriptor(a, choice.block_m, block_k) if describe else a,
        b=descriptor(b, choice.block_n, block_k) if describe else b,
        out=descriptor(out, choice.block_m, choice.block_n // choice.halves) if describe_out else out,
        m=m,
        n=n,
        k=k,
        a_stride=a.stride(0),
        b_stride=b.stride(0),
        out_stride=out.stride(0),
        BLOCK_M=choice.block_m,
        BLOCK_N=choice.block_n,
        BLOCK_K=block_k,
        GROUP_M=choice.group_m,
        SWAPPED=choice.swapped,
        HALVES=choice.halves,
        PERSISTENT=choice.programs > 0,
        DESCRIBE=describe,
        DESCRIBE_OUT=describe_out,
        num_warps=choice.warps,
        num_stages=choice.stages,
        **others,
    )
