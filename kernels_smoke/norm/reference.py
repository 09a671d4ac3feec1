"""The norms in plain torch, in float64 wherever the definition does not round."""

import torch


def add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, *, epsilon: float, zero_centred: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(norm, sum)`` for x and residual [rows, width]: the sum in the dtype of ``x``, the norm of it in float64."""
    total = (x.float() + residual.float()).to(x.dtype)
    return rms_norm(total, weight, epsilon=epsilon, zero_centred=zero_centred), total


def rms_norm(x: torch.Tensor, weight: torch.Tensor, *, epsilon: float, zero_centred: bool = False) -> torch.Tensor:
    """``x / sqrt(mean(x^2) + epsilon) * weight`` over the last dimension, in float64."""
    x = x.double()
    scale = weight.double() + 1.0 if zero_centred else weight.double()
    return x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + epsilon) * scale


def all_reduce_add_rms_norm(
    x: torch.Tensor, residual: torch.Tensor, weight: torch.Tensor, *, epsilon: float, zero_centred: bool
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(norm, sum)`` for x [ranks, rows, width]: the sum, in the order of the ranks in float32, is rounded once."""
    total = torch.zeros_like(residual, dtype=torch.float32)
    for part in x:
        total += part.float()
    total = (total + residual.float()).to(residual.dtype)
    return rms_norm(total, weight, epsilon=epsilon, zero_centred=zero_centred), total
