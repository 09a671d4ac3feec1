"""Vertical fusion: three operations, one after another on each element, in one pass."""

import torch
import triton
import triton.language as tl

from kernels_smoke.fusion.pointwise import Configuration, _place, as_rows, programs
from kernels_smoke.launch import on_device_of
from kernels_smoke.launch_plan import allocated, launch, plannable


def configure(itemsize: int) -> Configuration:
    """The layout for elements of ``itemsize`` bytes: two to four loads of 16 bytes a thread of each input."""
    return Configuration(block=2048 if itemsize == 2 else 1024, warps=4)


@triton.jit
def _mul_add_sigmoid_kernel(
    x_pointer, w_pointer, b_pointer, out_pointer,
    x_stride, w_stride, b_stride, out_stride, width,
    BLOCK: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    row, columns = _place(width, BLOCK)
    mask = columns < width
    # Each [BLOCK].
    x = tl.load(x_pointer + row * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION).to(tl.float32)
    w = tl.load(w_pointer + row * w_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION).to(tl.float32)
    b = tl.load(b_pointer + row * b_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION).to(tl.float32)
    activated = tl.sigmoid(x * w + b)
    tl.store(out_pointer + row * out_stride + columns, activated.to(out_pointer.dtype.element_ty), mask=mask)


@plannable
def mul_add_sigmoid(
    x: torch.Tensor, w: torch.Tensor, b: torch.Tensor, *, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Return ``1 / (1 + exp(-(x w + b)))`` for each element, computed in float32 and rounded once.

    - ``x``, ``w``, ``b``: of one shape and dtype: bfloat16, float16 or float32; contiguous, or [rows, width] with rows
      that are contiguous, and strided. There may be more than 2^31 elements.
    - ``out``: the result, of the same shape and dtype.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    out = allocated(torch.empty_like(x, memory_format=torch.contiguous_format)) if out is None else out
    x_rows, w_rows, b_rows, out_rows = as_rows({"x": x, "w": w, "b": b, "out": out})
    if x.numel():
        configuration = configure(x.itemsize)
        with on_device_of(x):
            launch(
                _mul_add_sigmoid_kernel,
                (programs(x_rows, configuration.block),),
                x_pointer=x_rows,
                w_pointer=w_rows,
                b_pointer=b_rows,
                out_pointer=out_rows,
                x_stride=x_rows.stride(0),
                w_stride=w_rows.stride(0),
                b_stride=b_rows.stride(0),
                out_stride=out_rows.stride(0),
                width=x_rows.shape[1],
                BLOCK=configuration.block,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return out
