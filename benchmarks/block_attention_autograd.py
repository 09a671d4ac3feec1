"""Attention within blocks as a function that torch differentiates, with a rotary embedding before it or without."""

from typing import Any

import torch
from torch.autograd.function import once_differentiable

from kernels_smoke.block_attention.block_diagonal_attention import block_diagonal_attention
from kernels_smoke.block_attention.block_diagonal_attention_backward import block_diagonal_attention_backward
from kernels_smoke.block_attention.blocks import check_heads
from kernels_smoke.launching.checks import check_rows


def attend(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    blocks: torch.Tensor,
    *,
    cos_sin: torch.Tensor | None = None,
    interleaved: bool = False,
    scale: float | None = None,
) -> torch.Tensor:
    """Return ``block_diagonal_attention(rotate(q), rotate(k), v, blocks)``, with gradients of ``q``, ``k`` and ``v``.

    Only the (rotated) inputs are kept for the backward pass, which is one kernel. ``cos_sin`` [tokens, head_dim] and
    ``interleaved`` are those of ``block_diagonal_attention_backward``, and have no gradient; without ``cos_sin``
    nothing is rotated. The rotation forward is plain torch, in float32, rounded to the dtype of ``q``.

    Shapes, dtypes and errors are those of ``block_diagonal_attention``. The blocks must cover all tokens: of others,
    results and gradients are undefined.
    """
    out: torch.Tensor = _Attention.apply(q, k, v, blocks, cos_sin, interleaved, scale)
    return out


def rotate(heads: torch.Tensor, cos_sin: torch.Tensor, *, interleaved: bool) -> torch.Tensor:
    """Rotary embedding of heads [tokens, heads, head_dim] by the angles of each token, in the dtype of ``heads``."""
    cosine, sine = cos_sin.float().unsqueeze(1).chunk(2, dim=-1)
    shape = (-1, 2) if interleaved else (2, -1)
    pair = -1 if interleaved else -2
    first, second = heads.float().unflatten(-1, shape).unbind(pair)
    turned = torch.stack((first * cosine - second * sine, second * cosine + first * sine), dim=pair)
    return turned.flatten(-2).to(heads.dtype)


class _Attention(torch.autograd.Function):  # type: ignore[misc]  # where types are checked, there is no torch
    @staticmethod
    def forward(
        ctx: Any,
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        blocks: torch.Tensor,
        cos_sin: torch.Tensor | None,
        interleaved: bool,
        scale: float | None,
    ) -> torch.Tensor:
        if cos_sin is not None:
            check_heads(q, blocks, scale, q=q, k=k, v=v)
            check_rows("cos_sin", cos_sin, (q.shape[0], q.shape[2]), (q.dtype, torch.float32), q)
            q, k = (rotate(heads, cos_sin, interleaved=interleaved) for heads in (q, k))
        ctx.save_for_backward(q, k, v, blocks, cos_sin)
        ctx.options = {"interleaved": interleaved, "scale": scale}
        return block_diagonal_attention(q, k, v, blocks, scale=scale)

    @staticmethod
    @once_differentiable  # type: ignore[untyped-decorator]  # as above
    def backward(ctx: Any, dout: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        q, k, v, blocks, cos_sin = ctx.saved_tensors
        dout = dout if dout.stride(-1) == 1 else dout.contiguous()  # the gradient of a sum is one element, expanded
        gradients = block_diagonal_attention_backward(q, k, v, dout, blocks, cos_sin=cos_sin, **ctx.options)
        return (*gradients, None, None, None, None)
