"""Residual addition, RMS norm and quantisation to fp8 with one scale for each group of a row, in one pass."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_rows, check_written, on_device_of
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.quantization.layout import (
    FEW_ROWS,
    WIDEST_NORM,
    Configuration,
    check_groups,
    check_matrix,
    check_width,
    results,
)
from kernels_smoke.quantization.scaling import LEAST_SCALE, _quotients, _scale


def configure(rows: int, width: int) -> Configuration:
    """The layout for ``rows`` of ``width`` elements: 16 elements a thread, two loads of 16 bytes from each input."""
    block = triton.next_power_of_2(width)
    tile = max(2048 // block, 1)
    warps = min(max(tile * block // 512, 1), 16)
    return Configuration(warps=warps, tile=tile, vector=8, weight_first=rows <= FEW_ROWS)


@triton.jit
def _rms_norm_per_block_quant_kernel(
    x_pointer, residual_pointer, weight_pointer, codes_pointer, scales_pointer,
    x_stride, residual_stride, codes_stride, scales_row_stride, scales_group_stride,
    count, group_count, epsilon,
    LEAST: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr, VECTOR: tl.constexpr,
    EVICTION: tl.constexpr, WEIGHT_FIRST: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    groups = tl.arange(0, GROUPS)[None, :, None]  # tiles are [ROWS, GROUPS, GROUP]
    columns = groups * GROUP + tl.max_contiguous(tl.arange(0, GROUP), VECTOR)[None, None, :]
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None, None]).to(tl.int64)
    mask = (rows < count) & (groups < group_count)
    if WEIGHT_FIRST:  # where there are few programs, one wait for memory is shorter than two
        weight = tl.load(weight_pointer + columns, mask=groups < group_count, other=0.0)  # [1, GROUPS, GROUP]
    # [ROWS, GROUPS, GROUP]
    x = tl.load(x_pointer + rows * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION)
    x = x.to(tl.float32)
    if residual_pointer is not None:
        residual_pointers = residual_pointer + rows * residual_stride + columns
        residual = tl.load(residual_pointers, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, GROUPS, GROUP]
        rounded = (x + residual.to(tl.float32)).to(residual_pointer.dtype.element_ty)
        tl.store(residual_pointers, rounded, mask=mask)
        x = rounded.to(tl.float32)  # the norm is that of the rounded sum: the next layer sees no other

    squares = tl.sum(tl.sum(x * x, axis=2, keep_dims=True), axis=1, keep_dims=True)
    rstd = tl.rsqrt(squares / (group_count * GROUP) + epsilon)  # [ROWS, 1, 1]
    if not WEIGHT_FIRST:  # with fewer registers in use until now, more programs run at once
        weight = tl.load(weight_pointer + columns, mask=groups < group_count, other=0.0)  # [1, GROUPS, GROUP]
    normed = x * rstd * weight.to(tl.float32)
    scale = _scale(tl.max(tl.abs(normed), axis=2, keep_dims=True), LEAST)  # [ROWS, GROUPS, 1]
    tl.store(scales_pointer + rows * scales_row_stride + groups * scales_group_stride, scale, mask=mask)
    codes = _quotients(normed, scale).to(codes_pointer.dtype.element_ty)
    tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)


@plannable
def rms_norm_per_block_quant(
    x: torch.Tensor,
    weight: torch.Tensor,
    *,
    group: int = 128,
    epsilon: float = 1e-6,
    residual: torch.Tensor | None = None,
    column_major_scales: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(codes, scales)`` of the RMS norm of ``x + residual``, and write that sum into ``residual``.

    ``S = x + residual`` rounded to their dtype (``x`` when there is no residual) and ``Y = S / sqrt(mean(S^2) +
    epsilon) * weight`` (Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019, equation 4), which is
    quantised in float32, without being rounded in between: ``scale = max(max |Y| / 448, 1 / (448 * 512))`` over
    ``group`` neighbours of a row and ``codes = e4m3(clamp(Y * (1 / scale), -448, 448))``. Semantics: vLLM's operator of
    this name, which rounds ``Y``, too, and takes the norm of the sum before it is rounded.

    - ``x``: [rows, width], bfloat16, float16 or float32; rows may be strided. Finite, and small enough for the sum of a
      row's squares in float32.
    - ``weight``: [width], of that dtype or float32.
    - ``group``: a power of two up to 1024 that divides the width.
    - ``residual``: like ``x``, updated in place.
    - ``column_major_scales``: new scales lie column by column, each column at a multiple of 16 bytes.
    - ``out``: codes [rows, width], float8_e4m3fn, rows may be strided; scales [rows, width / group], float32, of any
      strides. New ones when None.

    Raises ValueError when a shape, dtype, device or stride is not as said, or rows are wider than 16,384 elements.
    """
    check_matrix(x)
    rows, width = x.shape
    check_width(width, WIDEST_NORM)
    groups = check_groups(width, group)
    check_rows("weight", weight, (width,), (x.dtype, torch.float32), x)
    if residual is not None:
        check_rows("residual", residual, (rows, width), (x.dtype,), x)
        check_written("residual", residual)
    codes, scales = results(out, x, width=width, groups=groups, column_major=column_major_scales)
    if rows:
        configuration = configure(rows, width)
        with on_device_of(x):
            launch(
                _rms_norm_per_block_quant_kernel,
                (triton.cdiv(rows, configuration.tile),),
                x_pointer=x,
                residual_pointer=residual,
                weight_pointer=weight,
                codes_pointer=codes,
                scales_pointer=scales,
                x_stride=x.stride(0),
                residual_stride=0 if residual is None else residual.stride(0),
                codes_stride=codes.stride(0),
                scales_row_stride=scales.stride(0),
                scales_group_stride=scales.stride(1),
                count=rows,
                group_count=groups,
                epsilon=epsilon,
                LEAST=LEAST_SCALE,
                GROUP=group,
                GROUPS=triton.next_power_of_2(groups),
                ROWS=configuration.tile,
                VECTOR=min(configuration.vector, group),
                EVICTION=configuration.eviction,
                WEIGHT_FIRST=configuration.weight_first,
                num_warps=configuration.warps,
            )
    return codes, scales
