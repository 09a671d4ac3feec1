"""Newton-Schulz iteration in eager torch, as optimizers have it."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.model import Inputs

A, B, C = 3.4445, -4.7750, 2.0315
EPSILON = 1e-7


def newton_schulz(inputs: Inputs) -> dict[str, Any]:
    """Three products for each step, in the dtype of the result, with sums in the products, as ``torch.optim.Muon``."""
    x = inputs["x"].to(inputs["out_dtype"])
    tall = x.shape[-2] > x.shape[-1]
    x = x.mT if tall else x
    x = x / (torch.linalg.vector_norm(x, dim=(-2, -1), keepdim=True, dtype=torch.float32) + EPSILON).to(x.dtype)
    for _ in range(inputs["steps"]):
        square = x @ x.mT
        x = _sum_and_product(x, A, _sum_and_product(square, B, square, square, C), x)
    return {"out": x.mT if tall else x}


def _sum_and_product(
    term: torch.Tensor, weight: float, one: torch.Tensor, other: torch.Tensor, scale: float = 1.0
) -> torch.Tensor:
    """``weight * term + scale * one @ other``, also of batches."""
    if term.ndim == 2:
        return torch.addmm(term, one, other, beta=weight, alpha=scale)
    return torch.baddbmm(term, one, other, beta=weight, alpha=scale)


def gram_newton_schulz(inputs: Inputs) -> dict[str, Any]:
    """The same iteration, as a model's code has it: there is no other form of it in torch."""
    return newton_schulz(inputs)


def qk_clip(inputs: Inputs) -> dict[str, Any]:
    """Both weights multiplied by a factor for each head."""
    factors = (inputs["threshold"] / inputs["max_logits"]).clamp(max=1.0)
    head_dim = len(inputs["query_weight"]) // len(factors)
    least = factors.reshape(len(inputs["key_weight"]) // head_dim, -1).amin(dim=1).sqrt()
    own = factors / least.repeat_interleave(len(factors) // len(least))
    scaled = zip(("query_weight", "key_weight"), (own, least), strict=True)
    return {
        name: (inputs[name] * factor.repeat_interleave(head_dim)[:, None]).to(inputs[name].dtype)
        for name, factor in scaled
    }
