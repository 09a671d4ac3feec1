"""Norm and rotary embedding of heads in plain torch, in float64 wherever the definition does not round."""

import torch

from kernels_smoke.norm.reference import rms_norm


def rotate(heads: torch.Tensor, cos_sin: torch.Tensor, positions: torch.Tensor, *, interleaved: bool) -> torch.Tensor:
    """Rotary embedding of heads [tokens, heads, head_dim] at positions [tokens], in float64."""
    rotary_dim = cos_sin.shape[1]
    heads = heads.double().clone()
    cosine, sine = cos_sin.double()[positions].unsqueeze(1).chunk(2, dim=2)  # [tokens, 1, rotary_dim / 2]
    turned = heads[..., :rotary_dim]
    if interleaved:
        first, second = turned[..., 0::2], turned[..., 1::2]
    else:
        first, second = turned.chunk(2, dim=2)
    rotated = first * cosine - second * sine, second * cosine + first * sine
    first.copy_(rotated[0])
    second.copy_(rotated[1])
    return heads


def norm_and_rotate(
    heads: torch.Tensor,
    weight: torch.Tensor,
    cos_sin: torch.Tensor,
    positions: torch.Tensor,
    *,
    epsilon: float,
    zero_centred: bool,
    interleaved: bool = False,
) -> torch.Tensor:
    """Heads [tokens, heads, head_dim] normed, rounded to their dtype, and rotated."""
    normed = rms_norm(heads, weight, epsilon=epsilon, zero_centred=zero_centred).to(heads.dtype)
    return rotate(normed, cos_sin, positions, interleaved=interleaved)
