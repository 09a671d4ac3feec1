"""Attention within blocks and its gradients in plain torch, in float64: blocks of one length together."""

from collections.abc import Iterator

import torch

BLOCK = 64
AT_ONCE = 2048  # blocks


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, lengths: tuple[int, ...], scale: float
) -> torch.Tensor:
    """``softmax(scale q k^T) v`` for q, k, v [tokens, heads, head_dim], block by block of sequences of ``lengths``."""
    out = torch.zeros(v.shape, dtype=torch.float64, device=v.device)
    for tokens in _blocks(lengths, v.device):
        out[tokens] = _attention(*(tensor[tokens].double() for tensor in (q, k, v)), scale=scale)
    return out


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
    """``(dq, dk, dv)``, as torch's autograd has them; with ``cos_sin``, dq and dk are turned by the negative angles."""
    found = [torch.zeros(q.shape, dtype=torch.float64, device=q.device) for _ in range(3)]
    for tokens in _blocks(lengths, q.device):
        parts = _gradients(*(tensor[tokens].double() for tensor in (q, k, v, dout)), scale=scale)
        if cos_sin is not None:
            angles = cos_sin[tokens].flatten(0, 1)
            for index in range(2):
                turned = rotated(parts[index].flatten(0, 1), angles, interleaved=interleaved, back=True)
                parts[index] = turned.reshape(parts[index].shape)
        for whole, part in zip(found, parts, strict=True):
            whole[tokens] = part
    return found[0], found[1], found[2]


def _attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float) -> torch.Tensor:
    """For blocks [blocks, tokens, heads, head_dim] of one length."""
    weights = (torch.einsum("bqhd,bkhd->bhqk", q, k) * scale).softmax(dim=-1)
    return torch.einsum("bhqk,bkhd->bqhd", weights, v)


def _gradients(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, dout: torch.Tensor, *, scale: float
) -> list[torch.Tensor]:
    """Those of ``_attention``; its first use of a GPU takes two seconds less than that of autograd."""
    weights = (torch.einsum("bqhd,bkhd->bhqk", q, k) * scale).softmax(dim=-1)
    of_weights = torch.einsum("bqhd,bkhd->bhqk", dout, v)
    of_scores = weights * (of_weights - (of_weights * weights).sum(dim=-1, keepdim=True)) * scale
    return [
        torch.einsum("bhqk,bkhd->bqhd", of_scores, k),
        torch.einsum("bhqk,bqhd->bkhd", of_scores, q),
        torch.einsum("bhqk,bqhd->bkhd", weights, dout),
    ]


def rotated(heads: torch.Tensor, cos_sin: torch.Tensor, *, interleaved: bool, back: bool = False) -> torch.Tensor:
    """Heads [tokens, heads, head_dim] turned by each token's angles (``back``: by their negatives).

    A pair is a complex number, times ``cos + i sin``.
    """
    turn = torch.complex(*cos_sin.double().unsqueeze(1).chunk(2, dim=-1))
    pairs = heads.double().unflatten(-1, (-1, 2)) if interleaved else heads.double().unflatten(-1, (2, -1)).mT
    turned = torch.view_as_real(torch.complex(pairs[..., 0], pairs[..., 1]) * (turn.conj() if back else turn))
    return (turned if interleaved else turned.mT).flatten(-2)


def _blocks(lengths: tuple[int, ...], device: torch.device) -> Iterator[torch.Tensor]:
    """The tokens [blocks, tokens of a block] of blocks of one length, for all blocks of sequences of ``lengths``."""
    firsts: dict[int, list[int]] = {}
    begin = 0
    for length in lengths:
        for first in range(0, length, BLOCK):
            firsts.setdefault(min(BLOCK, length - first), []).append(begin + first)
        begin += length
    for length, places in firsts.items():
        for some in torch.tensor(places, device=device).split(AT_ONCE):
            yield some[:, None] + torch.arange(length, device=device)
