"""One step of the Muon optimizer for matrices."""

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_apart, check_written, on_device_of, require
from kernels_smoke.launch_plan import allocated, launch, plannable_apart
from kernels_smoke.muon.newton_schulz import INPUTS, OUTPUTS, matrices_of, newton_schulz

BLOCK = 2048  # elements of a row that a program works on, at most
WARPS = 4


@triton.jit
def _elements(program, rows, columns, stride, row_stride, column_stride, BLOCK: tl.constexpr):
    """The offsets of the elements of one program in [matrices, rows, columns], and which there are."""
    blocks = tl.cdiv(columns, BLOCK)
    row = (program // blocks).to(tl.int64)
    column = (program % blocks * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    return row // rows * stride + row % rows * row_stride + column * column_stride, column < columns


@triton.jit
def _momentum_kernel(
    gradient, gradient_stride, gradient_row_stride, gradient_column_stride,
    momentum, momentum_stride, momentum_row_stride, momentum_column_stride,
    direction, rows, columns, decay, NESTEROV: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip  # tensors and their strides, sizes and a number, constants
    program = tl.program_id(0)
    offsets, inside = _elements(
        program, rows, columns, gradient_stride, gradient_row_stride, gradient_column_stride, BLOCK
    )
    g = tl.load(gradient + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    offsets, inside = _elements(
        program, rows, columns, momentum_stride, momentum_row_stride, momentum_column_stride, BLOCK
    )
    before = tl.load(momentum + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    rounded = (before + (1.0 - decay) * (g - before)).to(momentum.dtype.element_ty)
    tl.store(momentum + offsets, rounded, mask=inside)
    result = rounded.to(tl.float32)
    if NESTEROV:
        result = g + decay * (result - g)
    offsets, inside = _elements(program, rows, columns, rows.to(tl.int64) * columns, columns, 1, BLOCK)
    tl.store(direction + offsets, result.to(direction.dtype.element_ty), mask=inside)


@triton.jit
def _step_kernel(
    weight, stride, row_stride, column_stride, orthogonal, rows, columns, kept, length, BLOCK: tl.constexpr,
):  # fmt: skip  # a tensor and its strides, the other tensor, sizes and numbers, a constant
    program = tl.program_id(0)
    offsets, inside = _elements(program, rows, columns, rows.to(tl.int64) * columns, columns, 1, BLOCK)
    update = tl.load(orthogonal + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    offsets, inside = _elements(program, rows, columns, stride, row_stride, column_stride, BLOCK)
    before = tl.load(weight + offsets, mask=inside, other=0.0).to(tl.float32)  # [BLOCK]
    tl.store(weight + offsets, (kept * before - length * update).to(weight.dtype.element_ty), mask=inside)


@plannable_apart
def muon_step(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    momentum: torch.Tensor,
    *,
    learning_rate: float,
    decay: float = 0.95,
    nesterov: bool = True,
    weight_decay: float = 0.0,
    dtype: torch.dtype = torch.bfloat16,
) -> None:
    """Update ``weight`` and ``momentum`` in place by one step of Muon.

    ``M = decay M + (1 - decay) G``; ``D = decay M + (1 - decay) G`` again with ``nesterov``, else ``M``;
    ``W = (1 - learning_rate weight_decay) W - learning_rate sqrt(max(1, m / n)) newton_schulz(D)``. Source: Jordan,
    "Muon: An optimizer for hidden layers in neural networks" (2024). It is for the matrices of hidden layers;
    embeddings, norms, biases and the output layer are left to AdamW.

    - ``weight``, ``gradient``, ``momentum``: [..., m, n] of one dtype (bfloat16, float16 or float32) and device; the
      leading dimensions count matrices, which are at one distance. ``momentum`` is zero at first. ``weight`` may be a
      parameter: nothing of a step is recorded for a gradient.
    - ``dtype``: that of the iteration, bfloat16 or float16.

    Raises ValueError, before anything is changed, when a shape, dtype or device is not as said, what is written is at
    the same place, or the momentum's decay is not in [0, 1).
    """
    require(weight.dtype in INPUTS, f"weight must be {' or '.join(map(str, INPUTS))}, not {weight.dtype}")
    require(dtype in OUTPUTS, f"the iteration runs in {' or '.join(map(str, OUTPUTS))}, not in {dtype}")
    for name, tensor in (("gradient", gradient), ("momentum", momentum)):
        require(tensor.shape == weight.shape, f"{name} must have the shape {tuple(weight.shape)} of weight")
        require(tensor.dtype == weight.dtype, f"{name} must be {weight.dtype} as weight is, not {tensor.dtype}")
        require(tensor.device == weight.device, f"{name} is on {tensor.device}, weight is on {weight.device}")
    check_written("weight", weight)
    check_written("momentum", momentum)
    require(weight.ndim >= 2, f"Muon is for matrices; weight is {weight.ndim}-dimensional")
    check_apart("weight", weight, "momentum", momentum)
    require(0.0 <= decay < 1.0, f"decay must be at least 0 and less than 1, not {decay}")

    if not weight.numel():
        return
    changed, slope, average = (
        matrices_of(name, tensor.detach())
        for name, tensor in (("weight", weight), ("gradient", gradient), ("momentum", momentum))
    )
    matrices, rows, columns = changed.shape
    length = learning_rate * max(1.0, rows / columns) ** 0.5
    direction = allocated(torch.empty(changed.shape, dtype=weight.dtype, device=weight.device))
    out = allocated(torch.empty(changed.shape, dtype=dtype, device=weight.device))
    block = min(triton.next_power_of_2(columns), BLOCK)
    grid = (matrices * rows * triton.cdiv(columns, block),)
    layout = {"rows": rows, "columns": columns, "BLOCK": block, "num_warps": WARPS}
    with on_device_of(weight):
        launch(
            _momentum_kernel,
            grid,
            gradient=slope,
            gradient_stride=slope.stride(0),
            gradient_row_stride=slope.stride(1),
            gradient_column_stride=slope.stride(2),
            momentum=average,
            momentum_stride=average.stride(0),
            momentum_row_stride=average.stride(1),
            momentum_column_stride=average.stride(2),
            direction=direction,
            decay=decay,
            NESTEROV=nesterov,
            **layout,
        )
        newton_schulz(direction, out=out)
        launch(
            _step_kernel,
            grid,
            weight=changed,
            stride=changed.stride(0),
            row_stride=changed.stride(1),
            column_stride=changed.stride(2),
            orthogonal=out,
            kept=1 - learning_rate * weight_decay,
            length=length,
            **layout,
        )
