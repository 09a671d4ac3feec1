"""Newton-Schulz iteration on the Gram matrix: for wide matrices, whose Gram matrix is small."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_written, on_device_of, require
from kernels_smoke.matmul.tiles import _load_tile, _place, _store_tile, described, descriptor
from kernels_smoke.muon.newton_schulz import COEFFICIENTS, INPUTS, OUTPUTS, configure
from kernels_smoke.muon.product import Tiles, _place_in_triangle, programs

__all__ = ["configure", "gram_newton_schulz"]

EPSILON = 1e-7  # is added to the norm: a matrix of zeros stays one
# Workspaces are float16, and hold numbers times these powers of two: small elements would be subnormal otherwise.
MATRIX, SQUARE = 256.0, 2048.0
LARGEST = 2.0**15  # of what a product of factors may be, times its scale


@triton.jit
def _commuting_kernel(
    x, y, addend, out, matrices, rows, columns, alpha, beta, gamma,
    BLOCK: tl.constexpr, BLOCK_K: tl.constexpr, PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # out = alpha x y^T + beta addend + gamma I of each matrix, for x and y [matrices * rows, columns], the others
    # [matrices * rows, rows]. x y^T is symmetric: only its tiles on and below the diagonal are computed.
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
            right = _load_tile(y, first + column, k, matrices * rows, columns, columns, BLOCK, BLOCK_K, DESCRIBE)
            acc = tl.dot(left, right.T, acc)  # [BLOCK, BLOCK]

        result = acc * alpha
        if addend is not None:
            # [BLOCK, BLOCK]
            more = _load_tile(addend, first + row, column, matrices * rows, rows, rows, BLOCK, BLOCK, DESCRIBE)
            diagonal = row + tl.arange(0, BLOCK)[:, None] == column + tl.arange(0, BLOCK)[None, :]
            result += beta * more.to(tl.float32) + tl.where(diagonal, gamma, 0.0)
        rounded = result.to(out.dtype if DESCRIBE else out.dtype.element_ty)
        _store_tile(out, rounded, first + row, column, matrices * rows, rows, rows, DESCRIBE)
        _store_tile(out, rounded.T, first + column, row, matrices * rows, rows, rows, DESCRIBE)


@triton.jit
def _apply_kernel(
    factor, x, out, matrices, rows, columns, alpha, out_rows, out_columns,
    out_stride, out_row_stride, out_column_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    HALVES: tl.constexpr, PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr, LAST: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # out = alpha factor x, for factor [matrices * rows, rows] and x [matrices * rows, columns].
    # The last product stores what is no padding, in the strides of the result, which may be those of its transpose.
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
            result = (acc0 if half == 0 else acc1) * alpha
            if LAST:
                offs_m = (row + tl.arange(0, BLOCK_M)).to(tl.int64)
                offs_n = (edge + tl.arange(0, width)).to(tl.int64)
                inside = (offs_m < out_rows)[:, None] & (offs_n < out_columns)[None, :]
                pointers = out + matrix.to(tl.int64) * out_stride + offs_m[:, None] * out_row_stride
                pointers += offs_n[None, :] * out_column_stride
                tl.store(pointers, result.to(out.dtype.element_ty), mask=inside)
            else:
                _store_tile(out, result, first + row, edge, matrices * rows, columns, columns, DESCRIBE)


def gram_newton_schulz(
    x: torch.Tensor,
    *,
    steps: int = 5,
    coefficients: tuple[float, float, float] = COEFFICIENTS,
    restart: int = 2,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return what ``newton_schulz`` does, by fewer operations where a matrix is at least twice as wide as high.

    A step is ``X <- F X`` with ``F = a I + b A + c A A`` and ``A = X X^T``; then ``A <- F A F``. All of these are
    polynomials of the first A, so that they commute and are symmetric: the steps need A alone, m x m, and the product
    of their factors, which is multiplied with X once. That is done after every ``restart`` steps, since A, whose
    eigenvalues are squares, knows the small ones badly: see README.md. Workspaces are float16, scaled.

    - ``x``: [..., m, n], bfloat16, float16 or float32; the leading dimensions count matrices. The rows are contiguous.
      Where m is greater than n, its transpose is iterated. The squares of a matrix must have a sum that float32 holds.
    - ``coefficients``: (a, b, c), with a from 1 to 4. ``restart``: 1 or more.
    - ``out``: the result, [..., m, n], bfloat16 or float16, with contiguous rows; the dtype of ``x`` unless said
      otherwise, and bfloat16 for float32.

    Besides, memory for two of ``x`` and for five squares of its shorter side is allocated, each padded to whole tiles.
    Raises ValueError when a shape, dtype, device, stride or number is not as said.
    """
    require(x.ndim >= 2, f"x must be a matrix or a batch of matrices, not {x.ndim}-dimensional")
    require(x.dtype in INPUTS, f"x must be {' or '.join(map(str, INPUTS))}, not {x.dtype}")
    require(steps >= 1 and restart >= 1, f"steps and restart must be 1 or more, not {steps} and {restart}")
    require(len(coefficients) == 3, f"coefficients must be three numbers, not {len(coefficients)}")
    require(1.0 <= coefficients[0] <= 4.0, f"the first coefficient must be from 1 to 4, not {coefficients[0]}")
    if out is None:
        dtype = x.dtype if x.dtype in OUTPUTS else torch.bfloat16
        out = torch.empty(x.shape, dtype=dtype, device=x.device)
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
        _iterate(source, target, [min(restart, steps - done) for done in range(0, steps, restart)], coefficients)
    return out


def _matrices(name: str, tensor: torch.Tensor) -> torch.Tensor:
    """``tensor`` as [matrices, m, n], in the same memory."""
    require(tensor.stride(-1) == 1 or tensor.shape[-1] == 1, f"the rows of {name} must be contiguous")
    try:
        return tensor.view(-1, *tensor.shape[-2:])
    except RuntimeError as error:
        raise ValueError(f"the matrices of {name} must be at one distance: {error}") from error


def _iterate(
    source: torch.Tensor, target: torch.Tensor, stages: list[int], coefficients: tuple[float, float, float]
) -> None:
    """``stages`` of so many steps each, from ``source`` into ``target``, both [matrices, p, q] with p <= q."""
    matrices, p, q = source.shape
    workspace = torch.empty((16, 16), dtype=torch.float16, device=target.device)
    choice = configure(matrices, p, q, described=described(workspace))
    rows, columns = (-(-size // step) * step for size, step in ((p, choice.row_padding), (q, choice.column_padding)))
    x = workspace.new_zeros(matrices * rows, columns)  # padding changes no product
    other = workspace.new_empty(matrices * rows, columns)
    squares = [workspace.new_empty(matrices * rows, rows) for _ in range(5)]

    norms = torch.linalg.vector_norm(source, dim=(-2, -1), dtype=torch.float32, keepdim=True)
    torch.mul(source, MATRIX / (norms + EPSILON), out=x.view(matrices, rows, columns)[:, :p, :q])
    for number, count in enumerate(stages):
        factor, scale = _factor(choice.symmetric, x, squares, matrices, count, coefficients)
        if number < len(stages) - 1:
            _apply(choice.update, factor, x, other, 1.0 / scale, matrices, last=False)
            x, other = other, x
        else:
            _apply(choice.update, factor, x, target, 1.0 / (scale * MATRIX), matrices, last=True)


def _factor(
    tiles: Tiles,
    x: torch.Tensor,
    squares: list[torch.Tensor],
    matrices: int,
    count: int,
    coefficients: tuple[float, float, float],
) -> tuple[torch.Tensor, float]:
    """The product of the factors of ``count`` steps from ``x``, and the power of two that it is multiplied by."""
    a, b, c = coefficients
    gram, between, *others = squares
    product, scale = gram, SQUARE  # that of the first step is its factor
    _commuting(tiles, x, x, gram, matrices, alpha=SQUARE / MATRIX**2)
    for step in range(count):
        factor = others.pop()
        _commuting(tiles, gram, gram, factor, matrices, alpha=c / SQUARE, addend=gram, beta=b, gamma=a * SQUARE)
        if step < count - 1:
            _commuting(tiles, factor, gram, between, matrices, alpha=1.0 / SQUARE)
            _commuting(tiles, factor, between, gram, matrices, alpha=1.0 / SQUARE)
        following = factor
        if step:
            following, before = others.pop(), scale
            scale = min(SQUARE, 2.0 ** math.floor(math.log2(LARGEST / a ** (step + 1))))
            _commuting(tiles, factor, product, following, matrices, alpha=scale / (SQUARE * before))
            others += [factor, product]
        product = following
    return product, scale


def _commuting(
    tiles: Tiles,
    x: torch.Tensor,
    y: torch.Tensor,
    out: torch.Tensor,
    matrices: int,
    *,
    alpha: float,
    addend: torch.Tensor | None = None,
    beta: float = 0.0,
    gamma: float = 0.0,
) -> None:
    """``out = alpha x y^T + beta addend + gamma I`` of each matrix, where that is symmetric."""
    describe = described(x)
    rows, block = out.shape[1], tiles.block_m
    side = rows // block
    count = matrices * side * (side + 1) // 2
    _commuting_kernel[(programs(tiles, count, x),)](
        x=descriptor(x, block, tiles.block_k) if describe else x,
        y=descriptor(y, block, tiles.block_k) if describe else y,
        addend=addend if addend is None or not describe else descriptor(addend, block, block),
        out=descriptor(out, block, block) if describe else out,
        matrices=matrices,
        rows=rows,
        columns=x.shape[1],
        alpha=alpha,
        beta=beta,
        gamma=gamma,
        BLOCK=block,
        BLOCK_K=tiles.block_k,
        PERSISTENT=tiles.programs > 0,
        DESCRIBE=describe,
        num_warps=tiles.warps,
        num_stages=tiles.stages,
    )


def _apply(
    tiles: Tiles, factor: torch.Tensor, x: torch.Tensor, out: torch.Tensor, alpha: float, matrices: int, *, last: bool
) -> None:
    """``out = alpha factor x`` of each matrix; the last ``out`` is [matrices, p, q], the others workspaces."""
    describe = described(x)
    (_, columns), rows = x.shape, factor.shape[1]
    count = matrices * (rows // tiles.block_m) * (columns // tiles.block_n)
    (out_rows, out_columns), strides = (out.shape[1:], out.stride()) if last else ((rows, columns), (0, columns, 1))
    _apply_kernel[(programs(tiles, count, x),)](
        factor=descriptor(factor, tiles.block_m, tiles.block_k) if describe else factor,
        x=descriptor(x, tiles.block_k, tiles.block_n) if describe else x,
        out=descriptor(out, tiles.block_m, tiles.block_n // tiles.halves) if describe and not last else out,
        matrices=matrices,
        rows=rows,
        columns=columns,
        alpha=alpha,
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
