"""The k greatest and their softmax in plain torch, by sorting, in float64."""

import torch


def topk_softmax(
    logits: torch.Tensor, k: int, *, renormalize: bool = False, temperature: float = 1.0
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(weights, indices)`` [rows, k] of the k greatest, in falling order; of equal logits, the first comes first."""
    weights = torch.softmax(logits.double() / temperature, dim=-1)
    indices = torch.sort(logits, dim=-1, descending=True, stable=True).indices[:, :k]
    weights = weights.gather(1, indices)
    return (weights / weights.sum(dim=-1, keepdim=True) if renormalize else weights), indices.to(torch.int32)


def top_k_sample(logits: torch.Tensor, uniforms: torch.Tensor, k: int, *, temperature: float = 1.0) -> torch.Tensor:
    """The first of the k greatest whose cumulative weight exceeds the uniform, [rows], int32."""
    weights, indices = topk_softmax(logits, k, renormalize=True, temperature=temperature)
    place = (weights.cumsum(dim=1) <= uniforms.double()[:, None]).sum(dim=1, keepdim=True).clamp(max=k - 1)
    return indices.gather(1, place)[:, 0]
