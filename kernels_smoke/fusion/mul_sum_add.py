"""Reduction fusion: what comes before and after a sum happens in the pass that computes it."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_matrix, check_rows, check_written, on_device_of
from kernels_smoke.launch_plan import allocated, launch, plannable

WIDEST = 2**30  # elements of a row: columns are counted in 32 bits


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out.

    A program adds up ``rows`` rows, in steps of ``block`` columns (both powers of two), ``stages`` of them under way at
    once, with ``warps`` warps. ``eviction`` is the cache's hint for the input, which is read once.
    """

    block: int
    rows: int
    warps: int
    stages: int = 1
    eviction: str = ""


def configure(width: int) -> Configuration:
    """The layout for rows of ``width`` elements: 32 elements a thread in each step, and the next step under way."""
    block = min(triton.next_power_of_2(width), 8192)
    rows = max(1024 // block, 1)
    stages = 2 if width > block else 1
    return Configuration(block=block, rows=rows, warps=max(rows * block // 1024, 1), stages=stages)


@triton.jit
def _mul_sum_add_kernel(
    x_pointer, out_pointer, x_stride, out_stride, count, width,
    BLOCK: tl.constexpr, ROWS: tl.constexpr, STAGES: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)
    total = tl.zeros([ROWS, BLOCK], tl.float32)
    for start in tl.range(0, width, BLOCK, num_stages=STAGES):
        columns = start + tl.arange(0, BLOCK)[None, :]
        mask = (rows < count)[:, None] & (columns < width)
        # [ROWS, BLOCK]
        x = tl.load(x_pointer + rows[:, None] * x_stride + columns, mask=mask, other=0.0, eviction_policy=EVICTION)
        total += 2.0 * x.to(tl.float32)
    result = tl.sum(total, axis=1) + 1.0  # [ROWS]
    tl.store(out_pointer + rows * out_stride, result.to(out_pointer.dtype.element_ty), mask=rows < count)


@plannable
def mul_sum_add(x: torch.Tensor, *, out: torch.Tensor | None = None) -> torch.Tensor:
    """Return ``(2 x).sum(-1) + 1`` for each row, computed in float32 and rounded once.

    - ``x``: [rows, width], bfloat16, float16 or float32; rows may be strided.
    - ``out``: the result, [rows], of the dtype of ``x``; it may be strided.

    Raises ValueError when a shape, dtype, device or stride is not as said, or rows are wider than 2^30 elements.
    """
    rows, width = check_matrix("x", x, WIDEST)
    out = allocated(x.new_empty(rows)) if out is None else out
    check_rows("out", out.unsqueeze(-1), (rows, 1), (x.dtype,), x)
    check_written("out", out)
    if rows:
        configuration = configure(width)
        with on_device_of(x):
            launch(
                _mul_sum_add_kernel,
                (triton.cdiv(rows, configuration.rows),),
                x_pointer=x,
                out_pointer=out,
                x_stride=x.stride(0),
                out_stride=out.stride(0),
                count=rows,
                width=width,
                BLOCK=configuration.block,
                ROWS=configuration.rows,
                STAGES=configuration.stages,
                EVICTION=configuration.eviction,
                num_warps=configuration.warps,
            )
    return out
