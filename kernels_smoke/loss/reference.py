"""Cross entropy and its gradient in plain torch, in float64."""

import torch


def cross_entropy(
    logits: torch.Tensor,
    targets: torch.Tensor,
    *,
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    weight: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(losses, gradient)`` [rows] and [rows, width] in float64, without autograd; in few copies of the logits."""
    kept = targets != ignore_index
    place = targets.long().clamp(min=0)[:, None]
    x = logits.double()
    lse = torch.logsumexp(x, dim=-1)
    losses = lse - (1 - label_smoothing) * x.gather(1, place)[:, 0]
    if label_smoothing:
        losses -= label_smoothing * x.mean(dim=-1)
    x -= lse[:, None]
    gradient = x.exp_()
    gradient.scatter_add_(1, place, torch.full_like(place, label_smoothing - 1.0, dtype=torch.float64))
    gradient -= label_smoothing / logits.shape[1]
    gradient *= (kept * (1.0 if weight is None else weight.double()))[:, None]
    gradient[~kept] = 0.0
    return torch.where(kept, losses, 0.0), gradient
