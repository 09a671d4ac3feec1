"""Residual addition and RMS norm in one pass: two inputs, two outputs, each element touched once."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_matrix, check_rows, check_written, on_device_of, whole_rows
from kernels_smoke.launch_plan import allocated, launch, plannable

WIDEST = 16384  # elements of a row: one program holds whole rows in registers
configure = whole_rows  # benchmarks/tune.py tries others


@triton.jit
def _store_sum_and_norm(
    exact, weight_pointer, normed_pointer, sum_pointer, rows, columns, mask, normed_stride, sum_stride, width, epsilon,
    ZERO_CENTRED: tl.constexpr,
):  # fmt: skip  # a tile, tensors, its place, strides, sizes, constants
    """Store the sum ``exact`` [ROWS, BLOCK] (float32), rounded, and its norm, at (rows, columns) where ``mask`` is."""
    rounded = exact.to(sum_pointer.dtype.element_ty)
    tl.store(sum_pointer + rows * sum_stride + columns, rounded, mask=mask)

    total = rounded.to(tl.float32)  # the norm is that of the rounded sum: the next layer sees no other
    rstd = tl.rsqrt(tl.sum(total * total, axis=1, keep_dims=True) / width + epsilon)  # [ROWS, 1]
    # The weight comes so late because with fewer registers in use, more programs run at once.
    weight = tl.load(weight_pointer + columns, mask=columns < width, other=0.0)  # [1, BLOCK]
    scale = weight.to(tl.float32)
    if ZERO_CENTRED:
        scale += 1.0
    normed = (total * rstd * scale).to(normed_pointer.dtype.element_ty)
    tl.store(normed_pointer + rows * normed_stride + columns, normed, mask=mask)


@triton.jit
def _fused_add_rms_norm_kernel(
    x_pointer, residual_pointer, weight_pointer, normed_pointer, sum_pointer,
    x_stride, residual_stride, normed_stride, sum_stride,
    count, width, epsilon,
    ZERO_CENTRED: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    columns = tl.arange(0, BLOCK)[None, :]
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    mask = (rows < count) & (columns < width)
    x = tl.load(x_pointer + rows * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, BLOCK]
    residual = tl.load(  # [ROWS, BLOCK]
        residual_pointer + rows * residual_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION
    )
    exact = x.to(tl.float32) + residual.to(tl.float32)
    _store_sum_and_norm(
        exact, weight_pointer, normed_pointer, sum_pointer, rows, columns, mask, normed_stride, sum_stride, width,
        epsilon, ZERO_CENTRED,
    )  # fmt: skip


@plannable
def fused_add_rms_norm(
    x: torch.Tensor,
    residual: torch.Tensor,
    weight: torch.Tensor,
    *,
    epsilon: float = 1e-6,
    zero_centred: bool = False,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(norm(x + residual), x + residual)``.

    ``S = x + residual`` rounded to the inputs' dtype, and ``S / sqrt(mean(S^2) + epsilon) * weight``, computed in
    float32; with ``zero_centred``, ``weight`` is stored less 1 (Gemma, Qwen 3.5). Formula: Zhang and Sennrich, "Root
    Mean Square Layer Normalization" (2019), equation 4.

    - ``x``, ``residual``: [rows, width], bfloat16, float16 or float32, both of one dtype; rows may be strided. They and
      their sum are finite. Squares are summed in float32: a row of values beyond 1.8e19 / sqrt(width) becomes zero.
    - ``weight``: [width], of that dtype or float32.
    - ``out``: the two results, [rows, width], of that dtype; ``residual`` may be the second, which then is updated in
      place.

    Raises ValueError when a shape, dtype, device or stride is not as said, or rows are wider than 16,384 elements.
    """
    rows, width = check_matrix("x", x, WIDEST)
    check_rows("residual", residual, (rows, width), (x.dtype,), x)
    check_rows("weight", weight, (width,), (x.dtype, torch.float32), x)
    normed, total = out or (allocated(torch.empty_like(x)), allocated(torch.empty_like(x)))
    for name, tensor in (("out[0]", normed), ("out[1]", total)):
        check_rows(name, tensor, (rows, width), (x.dtype,), x)
        check_written(name, tensor)
    if rows:
        configuration = configure(width)
        with on_device_of(x):
            launch(
                _fused_add_rms_norm_kernel,
                (triton.cdiv(rows, configuration.rows),),
                x_pointer=x,
                residual_pointer=residual,
                weight_pointer=weight,
                normed_pointer=normed,
                sum_pointer=total,
                x_stride=x.stride(0),
                residual_stride=residual.stride(0),
                normed_stride=normed.stride(0),
                sum_stride=total.stride(0),
                count=rows,
                width=width,
                epsilon=epsilon,
                ZERO_CENTRED=zero_centred,
                BLOCK=configuration.block,
                ROWS=configuration.rows,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return normed, total
