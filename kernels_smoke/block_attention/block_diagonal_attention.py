"""Attention within blocks of 64 tokens of jagged sequences."""

import torch
import triton
import triton.language as tl

from kernels_smoke.block_attention.blocks import (
    BLOCK,
    Configuration,
    _load,
    _store,
    _tile,
    _weights,
    check_heads,
    strides,
)
from kernels_smoke.launch import check_written, on_device_of
from kernels_smoke.launch_plan import allocated, launch, plannable


def configure() -> Configuration:
    """The layout: see "Layouts" in README.md."""
    # Four warps: four programs fit a multiprocessor of Hopper, which then load and compute in turn.
    return Configuration(warps=4)


@triton.jit
def _block_diagonal_attention_kernel(
    q, k, v, out, blocks, heads, scale, q_token, q_head, k_token, k_head, v_token, v_head, out_token, out_head,
    BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # Strides are named after what they step over: q_token is from one token of q to the next.
    start, length, head = _tile(blocks, tl.program_id(0), heads)
    b_q = _load(q + head * q_head, start, length, BLOCK, HEAD_DIM, q_token)  # [BLOCK, HEAD_DIM]
    b_k = _load(k + head * k_head, start, length, BLOCK, HEAD_DIM, k_token)  # [BLOCK, HEAD_DIM]
    b_v = _load(v + head * v_head, start, length, BLOCK, HEAD_DIM, v_token)  # [BLOCK, HEAD_DIM]
    p, l_i = _weights(b_q, b_k, length, scale, BLOCK)  # [BLOCK, BLOCK], [BLOCK, 1]
    b_o = tl.dot(p.to(b_v.dtype), b_v) * (1.0 / l_i)  # [BLOCK, HEAD_DIM]
    _store(out + head * out_head, b_o, start, length, BLOCK, HEAD_DIM, out_token)


@plannable
def block_diagonal_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    blocks: torch.Tensor,
    *,
    scale: float | None = None,
    out: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return ``softmax(scale q k^T) v`` of each head within each block: a token sees its own block, all of it.

    Computed in float32; the softmax's weights are rounded to the inputs' dtype before they multiply ``v``. Formula:
    Vaswani et al., "Attention Is All You Need" (2017), equation 1, within the blocks of Qiu et al., "BlockBERT" (2020).

    - ``q``, ``k``, ``v``: [tokens, heads, head_dim], bfloat16 or float16 (in Triton's interpreter also float32), all
      of one dtype; head_dim is 64 or 128. Tokens and heads may be at any distance, as in a packed projection.
    - ``blocks``: [blocks, 2], int32, what ``list_blocks`` made of the sequences' lengths; that they are within
      ``tokens`` is not checked.
    - ``scale``: positive; 1 / sqrt(head_dim) unless said otherwise.
    - ``out``: the result, like ``q``; no gradient is recorded for it (see ``attend``). Tokens of no block are left as
      they are: undefined, where ``out`` is not given.

    Raises ValueError when a shape, dtype, device, stride or the scale is not as said.
    """
    out = allocated(torch.empty_like(q)) if out is None else out
    scale = check_heads(q, blocks, scale, q=q, k=k, v=v, out=out)
    check_written("out", out)
    tokens, heads, head_dim = q.shape
    tiles = len(blocks) * heads if tokens else 0
    if tiles:
        with on_device_of(q):
            launch(
                _block_diagonal_attention_kernel,
                (tiles,),
                q=q,
                k=k,
                v=v,
                out=out,
                blocks=blocks,
                heads=heads,
                scale=scale,
                **strides(q=q, k=k, v=v, out=out),
                BLOCK=BLOCK,
                HEAD_DIM=head_dim,
                **configure().options(),
            )
    return out
