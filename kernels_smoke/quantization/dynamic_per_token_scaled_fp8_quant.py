"""Quantisation to fp8 with one scale for each row: a row is read once, stays in registers, and is written once."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import on_device_of
from kernels_smoke.launch_plan import launch, plannable
from kernels_smoke.quantization.layout import Configuration, check_bound, check_matrix, check_width, results
from kernels_smoke.quantization.scaling import LEAST_SCALE, _quotients, _row_scale


def configure(width: int) -> Configuration:
    """The layout for rows of ``width`` elements: 32 elements a thread."""
    block = triton.next_power_of_2(width)
    rows = max(2048 // block, 1)
    return Configuration(warps=min(max(rows * block // 1024, 1), 16), tile=rows)


@triton.jit
def _dynamic_per_token_scaled_fp8_quant_kernel(
    x_pointer, codes_pointer, scales_pointer, bound_pointer,
    x_stride, codes_stride, scales_stride, count, width,
    LEAST: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, VECTOR: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    columns = tl.max_contiguous(tl.arange(0, BLOCK), VECTOR)[None, :]
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    mask = (rows < count) & (columns < width)
    x = tl.load(x_pointer + rows * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, BLOCK]
    x = x.to(tl.float32)
    scale = _row_scale(tl.max(tl.abs(x), axis=1, keep_dims=True), bound_pointer, LEAST)  # [ROWS, 1]
    tl.store(scales_pointer + rows * scales_stride, scale, mask=rows < count)
    codes = _quotients(x, scale).to(codes_pointer.dtype.element_ty)
    tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)


@plannable
def dynamic_per_token_scaled_fp8_quant(
    x: torch.Tensor,
    *,
    scale_upper_bound: torch.Tensor | None = None,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(codes, scales)``: ``x`` in fp8, and for each row the number by which its codes must be multiplied.

    ``scale = max(max |x| / 448, 1 / (448 * 512))`` and ``codes = e4m3(clamp(x * (1 / scale), -448, 448))`` in float32:
    both divisions are rounded once, the conversion is to nearest even. Semantics: vLLM's operator of this name; were
    each value divided instead, one code of bfloat16 values in some four thousand would be its neighbour.

    - ``x``: [rows, width], bfloat16, float16 or float32; rows may be strided. Infinity saturates and counts as the
      greatest float32; not-a-number is not allowed.
    - ``scale_upper_bound``: one float32 on the device of ``x``. A row's greatest magnitude counts as at most this, and
      what is beyond saturates.
    - ``out``: codes [rows, width], float8_e4m3fn, rows may be strided; scales [rows, 1], float32. New ones when None.

    Raises ValueError when a shape, dtype, device or stride is not as said, or rows are wider than 32,768 elements.
    """
    check_matrix(x)
    rows, width = x.shape
    check_width(width)
    check_bound(scale_upper_bound, x)
    codes, scales = results(out, x, width=width)
    if rows:
        configuration = configure(width)
        block = triton.next_power_of_2(width)
        with on_device_of(x):
            launch(
                _dynamic_per_token_scaled_fp8_quant_kernel,
                (triton.cdiv(rows, configuration.tile),),
                x_pointer=x,
                codes_pointer=codes,
                scales_pointer=scales,
                bound_pointer=scale_upper_bound,
                x_stride=x.stride(0),
                codes_stride=codes.stride(0),
                scales_stride=scales.stride(0),
                count=rows,
                width=width,
                LEAST=LEAST_SCALE,
                BLOCK=block,
                ROWS=configuration.tile,
                VECTOR=min(configuration.vector, block),
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return codes, scales
