"""A gated addition in place: dot product, sigmoid, product and sum of a row in one pass (a shared expert's output)."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_matrix, check_rows, check_written, on_device_of, whole_rows
from kernels_smoke.launch_plan import launch, plannable

WIDEST = 16384  # elements of a row: one program holds whole rows in registers
configure = whole_rows  # benchmarks/tune.py tries others


@triton.jit
def _fused_gate_sigmoid_mul_add_kernel(
    final_pointer, x_pointer, weight_pointer, shared_pointer,
    final_stride, x_stride, shared_stride, count, width,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    columns = tl.arange(0, BLOCK)[None, :]
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]).to(tl.int64)
    mask = (rows < count) & (columns < width)
    x = tl.load(x_pointer + rows * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, BLOCK]
    # [ROWS, BLOCK]
    shared = tl.load(shared_pointer + rows * shared_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION)
    final_pointers = final_pointer + rows * final_stride + columns
    final = tl.load(final_pointers, mask=mask, other=0.0, eviction_policy=EVICTION)  # [ROWS, BLOCK]
    # The weight comes so late because with fewer registers in use, more programs run at once.
    weight = tl.load(weight_pointer + columns, mask=columns < width, other=0.0)  # [1, BLOCK]
    gate = tl.sigmoid(tl.sum(x.to(tl.float32) * weight.to(tl.float32), axis=1, keep_dims=True))  # [ROWS, 1]
    added = final.to(tl.float32) + gate * shared.to(tl.float32)
    tl.store(final_pointers, added.to(final_pointer.dtype.element_ty), mask=mask)


@plannable
def fused_gate_sigmoid_mul_add(
    final: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, shared: torch.Tensor
) -> torch.Tensor:
    """Add ``sigmoid(x . weight) * shared`` to ``final`` in place, row by row, and return ``final``.

    The dot product, its sigmoid, the product and the sum are computed in float32 and rounded once. Source: the shared
    expert of Qwen 3.5's mixture of experts, fused by TokenSpeed.

    - ``final``: [rows, width], bfloat16, float16 or float32, written in place; rows may be strided.
    - ``x``, ``shared``: [rows, width], of that dtype; rows may be strided.
    - ``weight``: [width], of that dtype or float32.

    Raises ValueError when a shape, dtype, device or stride is not as said, or rows are wider than 16,384 elements.
    """
    rows, width = check_matrix("final", final, WIDEST)
    check_rows("x", x, (rows, width), (final.dtype,), final)
    check_rows("weight", weight, (width,), (final.dtype, torch.float32), final)
    check_rows("shared", shared, (rows, width), (final.dtype,), final)
    check_written("final", final)
    if rows:
        configuration = configure(width)
        with on_device_of(final):
            launch(
                _fused_gate_sigmoid_mul_add_kernel,
                (triton.cdiv(rows, configuration.rows),),
                final_pointer=final,
                x_pointer=x,
                weight_pointer=weight,
                shared_pointer=shared,
                final_stride=final.stride(0),
                x_stride=x.stride(0),
                shared_stride=shared.stride(0),
                count=rows,
                width=width,
                BLOCK=configuration.block,
                ROWS=configuration.rows,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return final
