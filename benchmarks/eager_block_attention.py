"""Attention within blocks and its gradients in eager torch: a batch of all blocks, the short ones padded to 64 tokens.

If all sequences have whole blocks, a view is that batch: nothing is gathered, and nothing masked.
"""

from __future__ import annotations

from typing import Any

import torch

from benchmarks.block_attention_autograd import rotate
from kernels_smoke.suite.model import Inputs

BLOCK = 64


def block_diagonal_attention(inputs: Inputs) -> dict[str, Any]:
    """Torch's attention with a mask for padding."""
    blocks = _Blocks(inputs)
    q, k, v = (blocks.gathered(inputs[name]) for name in ("q", "k", "v"))
    mask = None if blocks.whole else blocks.inside[:, None, None, :]
    made = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=inputs["scale"])
    return {"out": blocks.scattered(made)}


def block_diagonal_attention_backward(inputs: Inputs) -> dict[str, Any]:
    """Five products, then the rotation: each step rounded to the inputs' dtype."""
    blocks = _Blocks(inputs)
    q, k, v, dout = (blocks.gathered(inputs[name]) for name in ("q", "k", "v", "dout"))
    scores = (q @ k.mT).float() * inputs["scale"]
    if not blocks.whole:
        dout = dout.masked_fill(~blocks.inside[:, None, :, None], 0.0)
        scores = scores.masked_fill(~blocks.inside[:, None, None, :], float("-inf"))
    probabilities = scores.softmax(dim=-1)
    grad = (dout @ v.mT).float()
    grad = (probabilities * (grad - (probabilities * grad).sum(dim=-1, keepdim=True))).to(q.dtype)
    made = (grad @ k * inputs["scale"], grad.mT @ q * inputs["scale"], probabilities.to(q.dtype).mT @ dout)
    dq, dk, dv = (blocks.scattered(tensor) for tensor in made)
    if inputs["cos_sin"] is not None:
        cosine, sine = inputs["cos_sin"].chunk(2, dim=-1)
        back = torch.cat((cosine, -sine), dim=-1)
        dq, dk = (rotate(tensor, back, interleaved=inputs["interleaved"]) for tensor in (dq, dk))
    return {"dq": dq, "dk": dk, "dv": dv}


class _Blocks:
    """The way from tokens [tokens, heads, head_dim] to blocks [blocks, heads, 64, head_dim], and back."""

    def __init__(self, inputs: Inputs) -> None:
        self.whole = not any(length % BLOCK for length in inputs["lengths"])
        if self.whole:
            return
        starts, lengths = inputs["blocks"].long().t().contiguous()
        tokens = inputs["q"].shape[0]
        place = torch.arange(BLOCK, device=starts.device)
        self.rows = (starts[:, None] + place).clamp(max=tokens - 1)
        self.inside = place < lengths[:, None]
        token = torch.arange(tokens, device=starts.device)
        self.block = torch.searchsorted(starts, token, right=True) - 1
        self.place = token - starts[self.block]

    def gathered(self, tensor: torch.Tensor) -> torch.Tensor:
        """Blocks, with other tokens if they are padded."""
        if self.whole:
            return tensor.unflatten(0, (-1, BLOCK)).transpose(1, 2)
        return tensor[self.rows].transpose(1, 2)

    def scattered(self, tensor: torch.Tensor) -> torch.Tensor:
        """Tokens."""
        if self.whole:
            return tensor.transpose(1, 2).flatten(0, 1)
        return tensor.transpose(1, 2)[self.block, self.place]
