"""The fused operations in plain torch, in float64. What could be gigabytes is computed in place."""

import torch


def gate_sigmoid_mul_add(
    final: torch.Tensor, x: torch.Tensor, weight: torch.Tensor, shared: torch.Tensor
) -> torch.Tensor:
    """``final + sigmoid(x . weight) * shared`` for each row."""
    gate = torch.sigmoid((x.double() * weight.double()).sum(dim=-1, keepdim=True))
    return final.double() + gate * shared.double()


def mul_add_sigmoid(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """``sigmoid(x w + b)``."""
    return x.double().mul_(w).add_(b).sigmoid_()


def mul_sum_add(x: torch.Tensor) -> torch.Tensor:
    """``(2 x).sum(-1) + 1``."""
    return (2.0 * x.double()).sum(dim=-1) + 1.0


def sin_and_cos(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """``(sin(x), cos(x))``."""
    return x.double().sin_(), x.double().cos_()


def linear(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    norm_weight: torch.Tensor | None,
    *,
    activation: str,
    zero_centred: bool,
    epsilon: float,
) -> torch.Tensor:
    """``activation(norm(x) @ weight.T + bias)`` [M, N] in float64; GELU by its approximation with tanh."""
    x = x.double()
    if norm_weight is not None:
        gamma = norm_weight.double() + (1.0 if zero_centred else 0.0)
        x = x / torch.sqrt(x.square().mean(dim=-1, keepdim=True) + epsilon) * gamma
    made = x @ weight.double().t()
    made = made if bias is None else made + bias.double()
    if activation == "gelu":
        return torch.nn.functional.gelu(made, approximate="tanh")
    return {"none": made, "relu": made.clamp(min=0.0), "silu": made * torch.sigmoid(made)}[activation]
