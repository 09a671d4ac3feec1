"""Attention within blocks and its gradients in plain torch, in float64."""

from __future__ import annotations

import torch


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: tuple[int, ...], scale: float
) -> torch.Tensor:
    """``softmax(scale q k^T) v`` for q, k, v [tokens, heads, head_dim], block by block of sequences of ``lengths``."""
    q, k, v = q.double(), k.double(), v.double()
    out = [v[:0]]
    for part_q, part_k, part_v in zip(*(_blocks(tensor, lengths) for tensor in (q, k, v)), strict=True):
        scores = torch.einsum("qhd,khd->hqk", part_q, part_k) * scale
        out.append(torch.einsum("hqk,khd->qhd", scores.softmax(dim=-1), part_v))
    return torch.cat(out)


def gradients(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dout: torch.Tensor,
    lengths: tuple[int, ...],
    scale: float,
    cos_sin: torch.Tensor | None = None,
    *,
    interleaved: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """``(dq, dk, dv)`` by torch's autograd; with ``cos_sin``, dq and dk are turned by the negative angles."""
    leaves = [tensor.double().detach().requires_grad_() for tensor in (q, k, v)]
    out = attention(leaves[0], leaves[1], leaves[2], lengths, scale)
    dq, dk, dv = torch.autograd.grad(out, leaves, dout.double(), materialize_grads=True)
    if cos_sin is not None:
        dq, dk = (rotated(tensor, cos_sin, interleaved=interleaved, back=True) for tensor in (dq, dk))
    return dq, dk, dv


def rotated(heads: torch.Tensor, cos_sin: torch.Tensor, *, interleaved: bool, back: bool = False) -> torch.Tensor:
    """Heads [tokens, heads, head_dim] turned by each token's angles (``back``: by their negatives).

    A pair is a complex number, times ``cos + i sin``.
    """
    turn = torch.complex(*cos_sin.double().unsqueeze(1).chunk(2, dim=-1))
    pairs = heads.double().unflatten(-1, (-1, 2)) if interleaved else heads.double().unflatten(-1, (2, -1)).mT
    turned = torch.view_as_real(torch.complex(pairs[..., 0], pairs[..., 1]) * (turn.conj() if back else turn))
    return (turned if interleaved else turned.mT).flatten(-2)


def _blocks(tensor: torch.Tensor, lengths: tuple[int, ...], size: int = 64) -> list[torch.Tensor]:
    """``tensor`` [tokens, ...] in sequences of ``lengths``, each in parts of ``size`` tokens."""
    return [part for sequence in tensor.split(list(lengths)) for part in sequence.split(size) if len(part)]
