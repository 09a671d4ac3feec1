"""Newton-Schulz iteration and Muon in plain torch, in float64."""

import torch

COEFFICIENTS = (3.4445, -4.7750, 2.0315)  # Jordan, "Muon: An optimizer for hidden layers in neural networks" (2024)
EPSILON = 1e-7


def newton_schulz(
    x: torch.Tensor, *, steps: int = 5, coefficients: tuple[float, float, float] = COEFFICIENTS
) -> torch.Tensor:
    """``steps`` times ``X <- a X + (b A + c A A) X`` with ``A = X X^T``, from ``x`` over its Frobenius norm.

    ``x`` is [..., m, n]; where m is greater than n, its transpose is iterated and transposed back.
    """
    a, b, c = coefficients
    tall = x.shape[-2] > x.shape[-1]
    iterate = x.double().mT if tall else x.double()
    iterate = iterate / (torch.linalg.vector_norm(iterate, dim=(-2, -1), keepdim=True) + EPSILON)
    for _ in range(steps):
        square = iterate @ iterate.mT
        iterate = a * iterate + (b * square + c * square @ square) @ iterate
    return iterate.mT if tall else iterate


def muon_step(
    weight: torch.Tensor,
    gradient: torch.Tensor,
    momentum: torch.Tensor,
    *,
    learning_rate: float,
    decay: float = 0.95,
    nesterov: bool = True,
    weight_decay: float = 0.0,
) -> tuple[torch.Tensor, torch.Tensor]:
    """``(weight, momentum)`` after one step, both new tensors in float64."""
    weight, gradient = weight.double(), gradient.double()
    momentum = decay * momentum.double() + (1 - decay) * gradient
    direction = decay * momentum + (1 - decay) * gradient if nesterov else momentum
    rows, columns = weight.shape[-2:]
    length = learning_rate * max(1.0, rows / columns) ** 0.5
    return (1 - learning_rate * weight_decay) * weight - length * newton_schulz(direction), momentum


def qk_clip(
    query_weight: torch.Tensor, key_weight: torch.Tensor, max_logits: torch.Tensor, *, threshold: float
) -> tuple[torch.Tensor, torch.Tensor]:
    """Both weights after the clipping of MuonClip, in float64; heads that share a key head share its factor."""
    heads = len(max_logits)
    head_dim = len(query_weight) // heads
    factors = (threshold / max_logits.double()).clamp(max=1.0)
    least = factors.reshape(len(key_weight) // head_dim, -1).amin(dim=1).sqrt()
    own = factors / least.repeat_interleave(heads // len(least))
    return (
        query_weight.double() * own.repeat_interleave(head_dim)[:, None],
        key_weight.double() * least.repeat_interleave(head_dim)[:, None],
    )
