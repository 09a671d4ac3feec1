"""Newton-Schulz iteration: a matrix whose singular values are driven towards one, by matrix products alone."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_written, interpreted, on_device_of, require
from kernels_smoke.launch_plan import allocated, launch, plannable
from kernels_smoke.matmul.tiles import _load_tile, _place, _store_tile, described, descriptor
from kernels_smoke.muon.frobenius_norm import SQUARE, scale_into
from kernels_smoke.muon.product import Tiles, programs, symmetric

INPUTS = (torch.bfloat16, torch.float16, torch.float32)
OUTPUTS = (torch.bfloat16, torch.float16)
COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan, "Muon: An optimizer for hidden layers in neural networks" (2024)


@dataclass(frozen=True)
class Configuration:
    """``symmetric`` lays out the products ``A = X X^T`` and ``A A``, in square tiles; ``update`` lays out ``B X``."""

    symmetric: Tiles
    update: Tiles

    @property
    def row_padding(self) -> int:
        """Rows of the workspaces are a multiple of this. All of these are powers of two."""
        return max(self.symmetric.block_m, self.symmetric.block_k, self.update.block_m, self.update.block_k)

    @property
    def column_padding(self) -> int:
        """Columns of the workspaces are a multiple of this."""
        return max(self.symmetric.block_k, self.update.block_n, SQUARE)


def configure(matrices: int, rows: int, columns: int, *, described: bool) -> Configuration:
    """The layout for matrices of rows <= columns: see "Layouts" in README.md.

    ``described``: tiles of the workspaces come through descriptors (TMA).
    """
    if interpreted():  # small, so that small cases have several tiles in both directions
        return Configuration(Tiles(32, 32, 32, 1, 4, 1, programs=1), Tiles(32, 64, 32, 4, 4, 1, halves=2, programs=1))
    side = triton.cdiv(rows, 128)
    triangle = matrices * side * (side + 1) // 2
    wide = matrices * side * triton.cdiv(columns, 256)
    if not described:  # 48 KiB of shared memory, which every GPU has
        tiles = Tiles(64, 64, 32, 8, 4, 4) if rows <= 64 or triangle < 132 else Tiles(128, 128, 32, 8, 8, 4)
        return Configuration(tiles, tiles)
    if rows <= 64 or (0 < rows % 128 <= 64 and triangle < 132):  # half of a large tile would be padding
        return Configuration(Tiles(64, 64, 64, 8, 4, 4), Tiles(64, 128, 64, 8, 4, 4))
    if triangle < 165:  # too few large tiles for 132 multiprocessors, or a second round for a few of them
        update = Tiles(128, 256, 64, 8, 8, 3, halves=2, programs=1) if wide >= 120 else Tiles(64, 128, 64, 8, 4, 4)
        return Configuration(Tiles(64, 64, 128, 8, 4, 3), update)
    symmetric = Tiles(128, 128, 64, 1, 8, 4, programs=1)
    if wide < 132:
        return Configuration(symmetric, Tiles(128, 128, 64, 8, 8, 3))
    return Configuration(symmetric, Tiles(128, 256, 64, 8, 8, 3, halves=2, programs=1))


@triton.jit
def _update_kernel(
    factor, x, kept, out, matrices, rows, columns, a, out_rows, out_columns,
    out_stride, out_row_stride, out_column_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    HALVES: tl.constexpr, PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # out = factor x + a x, for factor [matrices * rows, rows] and x [matrices * rows, columns]; `kept` is x.
    # The last step stores what is no padding, in the strides of the result, which may be those of its transpose.
    tiles_m = rows // BLOCK_M
    tiles_n = columns // BLOCK_N
    for tile in tl.range(tl.program_id(0), matrices * tiles_m * tiles_n, tl.num_programs(0), flatten=PERSISTENT):
        matrix = tile // (tiles_m * tiles_n)
        first = matrix * rows
        tile_m, tile_n = _place(tile % (tiles_m * tiles_n), tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
        for k in range(0, rows, BLOCK_K):
            # [BLOCK_M, BLOCK_K]
            left = _load_tile(factor, first + row, k, matrices * rows, rows, rows, BLOCK_M, BLOCK_K, DESCRIBE)
            # [BLOCK_K, BLOCK_N]
            right = _load_tile(x, first + k, column, matrices * rows, columns, columns, BLOCK_K, BLOCK_N, DESCRIBE)
            acc = tl.dot(left, right, acc)  # [BLOCK_M, BLOCK_N]

        width: tl.constexpr = BLOCK_N // HALVES
        acc0, acc1 = acc, acc
        if HALVES == 2:
            acc0, acc1 = tl.split(acc.reshape(BLOCK_M, 2, width).permute(0, 2, 1))
        for half in tl.static_range(HALVES):
            edge = column + half * width
            # [BLOCK_M, width]
            same = _load_tile(kept, first + row, edge, matrices * rows, columns, columns, BLOCK_M, width, DESCRIBE)
            result = (acc0 if half == 0 else acc1) + a * same.to(tl.float32)
            if LAST:
                offs_m = (row + tl.arange(0, BLOCK_M)).to(tl.int64)
                offs_n = (edge + tl.arange(0, width)).to(tl.int64)
                inside = (offs_m < out_rows)[:, None] & (offs_n < out_columns)[None, :]
                pointers = out + matrix.to(tl.int64) * out_stride + offs_m[:, None] * out_row_stride
                pointers += offs_n[None, :] * out_column_stride
                tl.store(pointers, result.to(out.dtype.element_ty), mask=inside)
            else:
                _store_tile(out, result, first + row, edge, matrices * rows, columns, columns, DESCRIBE)


@plannable
def newton_schulz(
    x: torch.Tensor,
    *,
    steps: int = 5,
    coefficients: tuple[float, float, float] = COEFFICIENTS,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``x`` with its singular values near one, which is near ``U V^T`` of ``x = U S V^T``.

    ``X = x / (||x|| + 1e-7)``, and ``steps`` times ``A = X X^T``, ``B = b A + c A A``, ``X = a X + B X`` with the
    coefficients (a, b, c). Every result is rounded to the dtype of ``out``; sums are in float32. Source: Jordan, "Muon:
    An optimizer for hidden layers in neural networks" (2024); with its coefficients and five steps, singular values
    above 2e-3 of the norm end between 0.68 and 1.21.

    - ``x``: [..., m, n], bfloat16, float16 or float32, with contiguous rows; all leading dimensions count matrices,
      which are at one distance. Where m is greater than n, the transpose is iterated. The squares of a matrix must have
      a sum that float32 holds.
    - ``out``: the result, [..., m, n], bfloat16 or float16, with contiguous rows; the dtype of ``x`` unless said
      otherwise, and bfloat16 for float32.

    Besides, memory for two of ``x`` and for two squares of its shorter side is allocated, each padded to whole tiles:
    of 64 rows and columns at least.
    Raises ValueError when a shape, dtype, device or stride is not as said, or ``steps`` is less than 1.
    """
    require(x.ndim >= 2, f"x must be a matrix or a batch of matrices, not {x.ndim}-dimensional")
    require(x.dtype in INPUTS, f"x must be {' or '.join(map(str, INPUTS))}, not {x.dtype}")
    require(steps >= 1, f"steps must be 1 or more, not {steps}")
    require(len(coefficients) == 3, f"coefficients must be three numbers, not {len(coefficients)}")
    if out is None:
        dtype = x.dtype if x.dtype in OUTPUTS else torch.bfloat16
        out = allocated(torch.empty(x.shape, dtype=dtype, device=x.device))
    require(out.shape == x.shape, f"out must have the shape {tuple(x.shape)}, not {tuple(out.shape)}")
    require(out.dtype in OUTPUTS, f"out must be {' or '.join(map(str, OUTPUTS))}, not {out.dtype}")
    require(out.device == x.device, f"out is on {out.device}, x is on {x.device}")
    if not x.numel():
        return out

    check_written("out", out)
    source, target = _matrices("x", x), _matrices("out", out)
    if x.shape[-2] > x.shape[-1]:
        source, target = source.mT, target.mT
    with on_device_of(x):
        _iterate(source, target, steps, coefficients)
    return out


def _matrices(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` as [matrices, m, n], in the same memory."""
    require(tensor.stride(-1) == 1 or tensor.shape[-1] == 1, f"the rows of {name} must be contiguous")
    try:
        return tensor.view(-1, *tensor.shape[-2:])
    except RuntimeError as error:
        raise ValueError(f"the matrices of {name} must be at one distance: {error}") from error


def _iterate(source: torch.Tensor, target: torch.Tensor, steps: int, coefficients: tuple[float, float, float]) -> None:
    """The iteration, from ``source`` into ``target``, both [matrices, p, q] with p <= q, in any strides.

    It runs in workspaces whose matrices are padded with zeros to whole tiles and are below one another: so no tile has
    to be masked, and none reaches into the next matrix.
    """
    a, b, c = coefficients
    matrices, p, q = source.shape
    workspace = torch.empty((16, 16), dtype=target.dtype, device=target.device)
    choice = configure(matrices, p, q, described=described(workspace))
    rows, columns = _padded(p, choice.row_padding), _padded(q, choice.column_padding)
    x, other = (allocated(workspace.new_empty(matrices * rows, columns)) for _ in range(2))
    square, factor = (allocated(workspace.new_empty(matrices * rows, rows)) for _ in range(2))

    scale_into(x, source)
    for step in range(steps):
        symmetric(choice.symmetric, x, None, square, matrices, 1.0, 0.0)
        symmetric(choice.symmetric, square, square, factor, matrices, c, b)
        last = step == steps - 1
        _update(choice.update, factor, x, target if last else other, matrices, a, last=last)
        x, other = other, x


def _padded(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _update(
    tiles: Tiles, factor: torch.Tensor, x: torch.Tensor, out: torch.Tensor, matrices: int, a: float, *, last: bool
) -> None:
    """``out = factor x + a x`` of each matrix; the last ``out`` is [matrices, p, q], the others workspaces."""
    describe = described(x)
    (_, columns), rows = x.shape, factor.shape[1]
    width = tiles.block_n // tiles.halves
    count = matrices * (rows // tiles.block_m) * (columns // tiles.block_n)
    (out_rows, out_columns), strides = (out.shape[1:], out.stride()) if last else ((rows, columns), (0, columns, 1))
    launch(
        _update_kernel,
        (programs(tiles, count, x),),
        factor=descriptor(factor, tiles.block_m, tiles.block_k) if describe else factor,
        x=descriptor(x, tiles.block_k, tiles.block_n) if describe else x,
        kept=descriptor(x, tiles.block_m, width) if describe else x,
        out=descriptor(out, tiles.block_m, width) if describe and not last else out,
        matrices=matrices,
        rows=rows,
        columns=columns,
        a=a,
        out_rows=out_rows,
        out_columns=out_columns,
        out_stride=strides[0],
        out_row_stride=strides[1],
        out_column_stride=strides[2],
        BLOCK_M=tiles.block_m,
        BLOCK_N=tiles.block_n,
        BLOCK_K=tiles.block_k,
        GROUP_M=tiles.group_m,
        HALVES=tiles.halves,
        PERSISTENT=tiles.programs > 0,
        DESCRIBE=describe,
        LAST=last,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )
