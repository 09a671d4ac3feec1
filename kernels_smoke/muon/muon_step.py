"""One step of the Muon optimizer for matrices."""

from __future__ import annotations

import torch

from kernels_smoke.launch import check_apart, check_written, require
from kernels_smoke.muon.newton_schulz import INPUTS, OUTPUTS, newton_schulz


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
      leading dimensions count matrices. ``momentum`` is zero at first. ``weight`` may be a parameter: nothing of a step
      is recorded for a gradient.
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
    with torch.no_grad():
        momentum.lerp_(gradient, 1 - decay)
        direction = gradient.lerp(momentum, decay) if nesterov else momentum
        rows, columns = weight.shape[-2:]
        length = learning_rate * max(1.0, rows / columns) ** 0.5
        out = torch.empty(weight.shape, dtype=dtype, device=weight.device)
        newton_schulz(direction.contiguous(), out=out)
        weight.mul_(1 - learning_rate * weight_decay).add_(out, alpha=-length)
