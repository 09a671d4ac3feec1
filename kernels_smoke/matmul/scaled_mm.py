"""The product of two fp8 matrices whose rows and columns are scaled."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_rows, check_span, interpreted, on_device_of, require
from kernels_smoke.launch_plan import plannable
from kernels_smoke.matmul.tiles import (
    Configuration,
    _halves,
    _load_tile,
    _place,
    _store_tile,
    check_operands,
    described,
    launch_tiles,
)


def configure(m: int, n: int, out_size: int, *, described: bool) -> Configuration:
    """The layout for a result of m x n elements of ``out_size`` bytes: see "Layouts" in README.md.

    ``described``: tiles of the operands come through descriptors.
    """
    if interpreted():  # small, so that small cases have several tiles in both directions
        swapped, block_m, halves = (True, 16, 1) if m <= 16 else (False, 32, 2)
        return Configuration(block_m, 32, 64, 2, 4, 1, swapped, halves, programs=1, describe_out=not swapped)
    rows = 16 if m <= 16 else 32 if m <= 32 else 64
    if not described:  # elements may come one by one: few registers for their addresses
        return Configuration(rows, 64, 64, group_m=8, warps=8, stages=3)
    if m <= 64:  # more in flight for each multiprocessor where it has one program only
        stages = 5 if triton.cdiv(n, 64) <= 132 else 3
        return Configuration(rows, 64, 256, group_m=1, warps=4, stages=stages, swapped=True)
    if triton.cdiv(m, 128) * triton.cdiv(n, 256) < 132:  # too few large tiles to occupy every multiprocessor
        return _small_tiles(m, n)
    stages = 4 if out_size == 2 else 3  # half of a tile of the result is in shared memory, too: 32 or 64 KiB
    return Configuration(128, 256, 128, group_m=8, warps=8, stages=stages, halves=2, programs=1, describe_out=True)


def _small_tiles(m: int, n: int) -> Configuration:
    """The smallest tiles of which there are no more than multiprocessors, each with much in flight."""
    if triton.cdiv(m, 64) * triton.cdiv(n, 64) <= 132:
        return Configuration(64, 64, 128, group_m=8, warps=4, stages=6)
    if triton.cdiv(m, 64) * triton.cdiv(n, 128) <= 132:
        return Configuration(64, 128, 128, group_m=8, warps=4, stages=6, halves=2)
    return Configuration(128, 128, 128, group_m=8, warps=8, stages=5, halves=2)


@triton.jit
def _scaled_mm_kernel(
    a, b, scale_a, scale_b, bias, out, m, n, k,
    a_stride, b_stride, scale_a_stride, scale_b_stride, out_stride,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP_M: tl.constexpr,
    SWAPPED: tl.constexpr, HALVES: tl.constexpr, PERSISTENT: tl.constexpr, DESCRIBE: tl.constexpr,
    DESCRIBE_OUT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # `a` is [m, k] and `b`, transposed by the caller, [n, k]: both row-major, descriptors or pointers.
    tiles_m = tl.cdiv(m, BLOCK_M)
    tiles_n = tl.cdiv(n, BLOCK_N)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, tl.num_programs(0), flatten=PERSISTENT):
        tile_m, tile_n = _place(tile, tiles_m, tiles_n, GROUP_M)
        row = tile_m * BLOCK_M
        column = tile_n * BLOCK_N
        acc = tl.zeros((BLOCK_N, BLOCK_M) if SWAPPED else (BLOCK_M, BLOCK_N), tl.float32)
        for start_k in range(0, k, BLOCK_K):
            tile_a = _load_tile(a, row, start_k, m, k, a_stride, BLOCK_M, BLOCK_K, DESCRIBE)  # [BLOCK_M, BLOCK_K]
            tile_b = _load_tile(b, column, start_k, n, k, b_stride, BLOCK_N, BLOCK_K, DESCRIBE)  # [BLOCK_N, BLOCK_K]
            left, right = (tile_b, tile_a) if SWAPPED else (tile_a, tile_b)
            acc = tl.dot(left, right.T, acc)  # [BLOCK_M, BLOCK_N], or its transpose
        if SWAPPED:
            acc = acc.T

        width: tl.constexpr = BLOCK_N // HALVES
        acc0, acc1 = _halves(acc, HALVES)
        offs_m = row + tl.arange(0, BLOCK_M)
        row_scale = tl.load(scale_a + offs_m * scale_a_stride, mask=offs_m < m, other=0.0)  # [BLOCK_M]
        for half in tl.static_range(HALVES):
            result = acc0 if half == 0 else acc1
            offs_n = column + half * width + tl.arange(0, width)
            column_scale = tl.load(scale_b + offs_n * scale_b_stride, mask=offs_n < n, other=0.0)  # [width]
            result = result * row_scale[:, None] * column_scale[None, :]  # [BLOCK_M, width]
            if bias is not None:
                result += tl.load(bias + offs_n, mask=offs_n < n, other=0.0).to(tl.float32)[None, :]  # [1, width]
            _store_tile(out, result, row, column + half * width, m, n, out_stride, DESCRIBE_OUT)


@plannable
def scaled_mm(
    a: torch.Tensor,
    b: torch.Tensor,
    scale_a: torch.Tensor,
    scale_b: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    out_dtype: torch.dtype | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``scale_a * scale_b * (a @ b) + bias``, accumulated in float32.

    The convention is that of ``torch._scaled_mm`` with scales for rows and columns. For fp8 on Hopper, the tensor core
    keeps about 14 bits of a partial sum, as it does for cuBLAS with ``use_fast_accum``.

    - ``a``: [M, K], row-major, float8_e4m3fn (bfloat16 and float16 do as well).
    - ``b``: [K, N] of the same dtype, column-major: the transpose of a matrix [N, K] whose rows are contiguous.
    - ``scale_a``: [M, 1] or one element; ``scale_b``: [1, N] or one element; float32. ``bias``: [N], any of the
      results' dtypes.
    - ``out``: the result [M, N], of ``out_dtype``: bfloat16 (unless said otherwise), float16 or float32.

    Rows of ``a``, of ``b`` transposed and of ``out`` may be further apart than they are wide. No size has to be a
    multiple of anything, but it is faster when rows begin at multiples of 16 bytes.

    Raises ValueError when a shape, dtype, device or stride is not as said, or K is 0.
    """
    out = check_operands(a, b, out_dtype, out)
    m, n = out.shape
    row_scales = _scales("scale_a", scale_a, (m, 1), a)
    column_scales = _scales("scale_b", scale_b, (1, n), a)
    if bias is not None:
        check_rows("bias", bias, (n,), (torch.bfloat16, torch.float16, torch.float32), a)
    if m and n:
        with on_device_of(a):
            multiply_scaled(a, b.t(), row_scales, column_scales, bias, out)
    return out


def multiply_scaled(
    a: torch.Tensor,
    rows: torch.Tensor,
    row_scales: torch.Tensor,
    column_scales: torch.Tensor,
    bias: torch.Tensor | None,
    out: torch.Tensor,
) -> None:
    """Write into ``out`` what ``scaled_mm`` returns. The arguments have been checked; ``rows`` is b transposed."""
    describe = described(a) and described(rows)
    launch_tiles(
        _scaled_mm_kernel,
        configure(a.shape[0], rows.shape[0], out.itemsize, described=describe),
        a,
        rows,
        out,
        scale_a=row_scales,
        scale_b=column_scales,
        bias=bias,
        scale_a_stride=row_scales.stride(0),
        scale_b_stride=column_scales.stride(1),
    )


def _scales(name: str, scales: torch.Tensor, shape: tuple[int, int], like: torch.Tensor) -> torch.Tensor:
    """``scales`` as ``shape``; one element stands for all of them, at stride 0."""
    require(scales.dtype == torch.float32, f"{name} must be float32, not {scales.dtype}")
    require(scales.device == like.device, f"{name} is on {scales.device}, the other arguments are on {like.device}")
    check_span(name, scales)
    if scales.numel() == 1:
        return scales.reshape(1, 1).expand(shape)
    require(tuple(scales.shape) == shape, f"{name} must have the shape {shape} or 1 element, not {tuple(scales.shape)}")
    return scales
