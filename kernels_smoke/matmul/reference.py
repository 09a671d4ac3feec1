"""The products in plain torch, in float64."""

import torch


def scaled_mm(
    a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """``scale_a * scale_b * (a @ b) + bias`` for a [M, K], b [K, N], scales [M, 1] and [1, N] or of one element."""
    result = a.double() @ b.double() * scale_a.double() * scale_b.double()
    return result if bias is None else result + bias.double()


def scaled_mm_blockwise(a: torch.Tensor, b: torch.Tensor, scale_a: torch.Tensor, scale_b: torch.Tensor) -> torch.Tensor:
    """``a @ b`` for a [M, K], b [K, N], whose elements are scaled first.

    ``scale_a`` [M, ceil(K / 128)] has a scale for each 128 columns of ``a``, ``scale_b`` [ceil(K / 128),
    ceil(N / 128)] one for each 128 x 128 elements of ``b``.
    """
    k, n = b.shape
    row = scale_a.double().repeat_interleave(128, dim=1)[:, :k]
    both = scale_b.double().repeat_interleave(128, dim=0)[:k].repeat_interleave(128, dim=1)[:, :n]
    return (a.double() * row) @ (b.double() * both)
