"""Quantisation to fp8 with one scale for each group of a row, as block-wise scaled matrix products take it."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import on_device_of
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.quantization.layout import (
    Configuration,
    check_groups,
    check_matrix,
    few_groups,
    results,
    tiles_of,
)
from kernels_smoke.quantization.scaling import LEAST_GROUP_SCALE, LEAST_UE8M0_SCALE, _power_of_two, _quotients, _scale


def configure(group: int, elements: int) -> Configuration:
    """The layout for ``elements`` in groups of ``group``: 16 of them a thread."""
    return few_groups(group, elements) or Configuration(warps=2, tile=1024 // group)


@triton.jit
def _per_token_group_fp8_quant_kernel(
    x_pointer, codes_pointer, scales_pointer,
    x_stride, codes_stride, scales_row_stride, scales_group_stride, count, group_count,
    UE8M0: tl.constexpr, LEAST: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr,
    VECTOR: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    tiles_across = tl.cdiv(group_count, GROUPS)  # tiles are [ROWS, GROUPS, GROUP], and so many stand side by side
    tile = tl.program_id(0)
    rows = (tile // tiles_across * ROWS + tl.arange(0, ROWS)[:, None, None]).to(tl.int64)
    groups = tile % tiles_across * GROUPS + tl.arange(0, GROUPS)[None, :, None]
    columns = groups * GROUP + tl.max_contiguous(tl.arange(0, GROUP), VECTOR)[None, None, :]
    mask = (rows < count) & (groups < group_count)
    # [ROWS, GROUPS, GROUP]
    x = tl.load(x_pointer + rows * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION)
    x = x.to(tl.float32)
    scale = _scale(tl.max(tl.abs(x), axis=2, keep_dims=True), LEAST)  # [ROWS, GROUPS, 1]
    if UE8M0:
        scale = _power_of_two(scale)
    tl.store(scales_pointer + rows * scales_row_stride + groups * scales_group_stride, scale, mask=mask)
    codes = _quotients(x, scale).to(codes_pointer.dtype.element_ty)
    tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)


@plannable
def per_token_group_fp8_quant(
    x: torch.Tensor,
    *,
    group: int = 128,
    ue8m0: bool = False,
    column_major_scales: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(codes, scales)``: ``x`` in fp8, and for each group the number by which its codes must be multiplied.

    ``scale = max(max |x|, 1e-10) / 448`` over ``group`` neighbours of a row; with ``ue8m0`` it is ``2^ceil(log2
    max(scale, 1e-10))``, an exact power of two, which the UE8M0 format holds (OCP Microscaling Formats 1.0, 5.4.1).
    ``codes = e4m3(clamp(x * (1 / scale), -448, 448))``. All in float32: both divisions are rounded once, the conversion
    is to nearest even. Semantics: vLLM's operator of this name, which divides each value; one code of bfloat16 values
    in some two thousand is its neighbour there (none with ``ue8m0``).

    - ``x``: [rows, width], bfloat16, float16 or float32; rows may be strided. Infinity saturates and counts as the
      greatest float32; not-a-number is not allowed.
    - ``group``: a power of two up to 1024 that divides the width.
    - ``column_major_scales``: new scales lie column by column, each column at a multiple of 16 bytes.
    - ``out``: codes [rows, width], float8_e4m3fn, rows may be strided; scales [rows, width / group], float32, of any
      strides. New ones when None.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    check_matrix(x)
    rows, width = x.shape
    groups = check_groups(width, group)
    codes, scales = results(out, x, width=width, groups=groups, column_major=column_major_scales)
    if rows:
        configuration = configure(group, rows * width)
        tiles, rows_of_tile, groups_of_tile = tiles_of(configuration, rows, groups)
        with on_device_of(x):
            launch(
                _per_token_group_fp8_quant_kernel,
                (tiles,),
                x_pointer=x,
                codes_pointer=codes,
                scales_pointer=scales,
                x_stride=x.stride(0),
                codes_stride=codes.stride(0),
                scales_row_stride=scales.stride(0),
                scales_group_stride=scales.stride(1),
                count=rows,
                group_count=groups,
                UE8M0=ue8m0,
                LEAST=LEAST_UE8M0_SCALE if ue8m0 else LEAST_GROUP_SCALE,
                GROUP=group,
                GROUPS=groups_of_tile,
                ROWS=rows_of_tile,
                VECTOR=min(configuration.vector, group),
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return codes, scales
