"""SwiGLU and quantisation to fp8 with one scale for each group of a row, in one pass."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import on_device_of, require
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.quantization.activation import _silu_and_mul
from kernels_smoke.quantization.layout import (
    Configuration,
    check_groups,
    check_matrix,
    few_groups,
    results,
    tiles_of,
)
from kernels_smoke.quantization.scaling import LEAST_SILU_GROUP_SCALE, _quotients, _scale

SOME = 2**22  # products, which a GPU is done with in a few microseconds


def configure(group: int, products: int) -> Configuration:
    """The layout for groups of ``group`` products: 16 of them a thread, two loads of 16 bytes from each half.

    Where there are not many ``products``, twice as many threads have half as many each.
    """
    return few_groups(group, products) or Configuration(warps=4 if products < SOME else 2, tile=1024 // group)


@triton.jit
def _silu_and_mul_per_block_quant_kernel(
    x_pointer, codes_pointer, scales_pointer,
    x_stride, codes_stride, scales_row_stride, scales_group_stride, count, group_count,
    LEAST: tl.constexpr, GROUP: tl.constexpr, GROUPS: tl.constexpr, ROWS: tl.constexpr, VECTOR: tl.constexpr,
    EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    tiles_across = tl.cdiv(group_count, GROUPS)  # tiles are [ROWS, GROUPS, GROUP], and so many stand side by side
    tile = tl.program_id(0)
    rows = (tile // tiles_across * ROWS + tl.arange(0, ROWS)[:, None, None]).to(tl.int64)
    groups = tile % tiles_across * GROUPS + tl.arange(0, GROUPS)[None, :, None]
    columns = groups * GROUP + tl.max_contiguous(tl.arange(0, GROUP), VECTOR)[None, None, :]
    mask = (rows < count) & (groups < group_count)
    gates = x_pointer + rows * x_stride + columns
    gate = tl.load(gates, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, GROUPS, GROUP]
    up = tl.load(gates + group_count * GROUP, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, GROUPS, GROUP]
    product = _silu_and_mul(gate, up)
    scale = _scale(tl.max(tl.abs(product), axis=2, keep_dims=True), LEAST)  # [ROWS, GROUPS, 1]
    tl.store(scales_pointer + rows * scales_row_stride + groups * scales_group_stride, scale, mask=mask)
    codes = _quotients(product, scale).to(codes_pointer.dtype.element_ty)
    tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)


@plannable
def silu_and_mul_per_block_quant(
    x: torch.Tensor,
    *,
    group: int = 128,
    column_major_scales: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(codes, scales)`` of ``silu(gate) * up``, where ``gate`` and ``up`` are the halves of the rows of ``x``.

    ``Y = gate / (1 + exp(-gate)) * up`` (SwiGLU: Shazeer, "GLU Variants Improve Transformer", 2020, equation 6), which
    is quantised in float32, without being rounded in between: ``scale = max(max |Y| / 448, 1e-10)`` over ``group``
    neighbours of a row and ``codes = e4m3(clamp(Y * (1 / scale), -448, 448))``. Semantics: vLLM's operator of this
    name.

    - ``x``: [rows, 2 width], bfloat16, float16 or float32; rows may be strided. Finite; a product beyond float32
      saturates and counts as the greatest float32, and gates below -88 count as zero.
    - ``group``: a power of two up to 1024 that divides the width.
    - ``column_major_scales``: new scales lie column by column, each column at a multiple of 16 bytes.
    - ``out``: codes [rows, width], float8_e4m3fn, rows may be strided; scales [rows, width / group], float32, of any
      strides. New ones when None.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    check_matrix(x)
    rows, both = x.shape
    require(both % 2 == 0, f"a row of x is two halves, and {both} is odd")
    width = both // 2
    groups = check_groups(width, group)
    codes, scales = results(out, x, width=width, groups=groups, column_major=column_major_scales)
    if rows:
        configuration = configure(group, rows * width)
        tiles, rows_of_tile, groups_of_tile = tiles_of(configuration, rows, groups)
        with on_device_of(x):
            launch(
                _silu_and_mul_per_block_quant_kernel,
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
                LEAST=LEAST_SILU_GROUP_SCALE,
                GROUP=group,
                GROUPS=groups_of_tile,
                ROWS=rows_of_tile,
                VECTOR=min(configuration.vector, group),
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return codes, scales
