"""The mean cross entropy as a function that autograd can differentiate."""

from typing import Any

import torch

from kernels_smoke.loss.cross_entropy import cross_entropy


class _MeanCrossEntropy(torch.autograd.Function):  # type: ignore[misc]  # torch is Any here
    @staticmethod
    def forward(
        ctx: Any, logits: torch.Tensor, targets: torch.Tensor, ignore_index: int, label_smoothing: float
    ) -> torch.Tensor:
        weight = 1.0 / (targets != ignore_index).sum().float()
        gradient = torch.empty_like(logits) if ctx.needs_input_grad[0] else None
        losses = cross_entropy(
            logits,
            targets,
            ignore_index=ignore_index,
            label_smoothing=label_smoothing,
            weight=weight,
            gradient=gradient,
        )
        ctx.save_for_backward(gradient)
        return losses.sum() * weight

    @staticmethod
    def backward(ctx: Any, grad_output: torch.Tensor) -> tuple[Any, ...]:
        (gradient,) = ctx.saved_tensors
        return None if gradient is None else gradient * grad_output.to(gradient.dtype), None, None, None


def mean_cross_entropy(
    logits: torch.Tensor, targets: torch.Tensor, *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> torch.Tensor:
    """Return the mean of ``cross_entropy`` over the rows whose target is not ``ignore_index``, in float32.

    The gradient is computed in the forward pass and kept instead of the logits. Without a row that counts, the mean is
    NaN, as torch's is. Arguments and exceptions are those of ``cross_entropy``.
    """
    mean: torch.Tensor = _MeanCrossEntropy.apply(logits, targets, ignore_index, label_smoothing)
    return mean
