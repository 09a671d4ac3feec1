"""The k greatest of each row and cross entropy as a model's code has them. See ``eager.py``."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.model import Inputs


def topk_softmax(inputs: Inputs) -> dict[str, Any]:
    """The softmax of whole rows, then the k greatest; of equal ones torch may take others, so no indices."""
    weights, _ = torch.softmax(inputs["logits"].float() / inputs["temperature"], dim=-1).topk(inputs["k"])
    if inputs["renormalize"]:
        weights = weights / weights.sum(dim=-1, keepdim=True)
    return {"weights": weights}


def top_k_sample(inputs: Inputs) -> dict[str, Any]:
    """Rows sorted, so that equal logits keep their order, the softmax of k, and the first sum beyond the uniform."""
    ordered = torch.sort(inputs["logits"], dim=-1, descending=True, stable=True)
    values, indices = (each[:, : inputs["k"]] for each in (ordered.values.float(), ordered.indices))
    cumulative = torch.softmax(values / inputs["temperature"], dim=-1).cumsum(dim=-1)
    place = (cumulative <= inputs["uniforms"][:, None]).sum(dim=-1, keepdim=True).clamp(max=inputs["k"] - 1)
    return {"tokens": indices.gather(1, place).to(torch.int32)}


def cross_entropy(inputs: Inputs) -> dict[str, Any]:
    """The loss of torch, and its gradient by autograd."""
    logits = inputs["logits"].detach().requires_grad_(inputs["with_gradient"])
    with torch.enable_grad():
        losses = torch.nn.functional.cross_entropy(
            logits.float(),
            inputs["targets"].long(),
            reduction="none",
            ignore_index=inputs["ignore_index"],
            label_smoothing=inputs["label_smoothing"],
        )
        if not inputs["with_gradient"]:
            return {"losses": losses}
        weight = 1.0 if inputs["weight"] is None else inputs["weight"]
        (gradient,) = torch.autograd.grad(losses, logits, torch.ones_like(losses) * weight)
    return {"losses": losses.detach(), "gradient": gradient}
