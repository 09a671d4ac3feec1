"""The gradients of attention within blocks, and those of a rotary embedding before it."""

import itertools

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
from kernels_smoke.launch import architecture, check_apart, check_rows, check_written, on_device_of
from kernels_smoke.launch_plan import allocated, launch, plannable_apart


def configure(head_dim: int, *, rotary: bool) -> Configuration:
    """The layout for heads of ``head_dim`` elements: see "Layouts" in README.md."""
    if architecture().number != 90:
        return Configuration()  # fits the registers and the shared memory of every GPU that Triton knows
    if rotary:  # angles are loaded when they are needed, which takes another program that computes meanwhile
        return Configuration(warps=4)
    return Configuration(warps=4, stages=5, programs=128 // head_dim)


@triton.jit
def _rotated_back(gradient, cos, sin, INTERLEAVED: tl.constexpr):
    """R(-theta) of each row of ``gradient``: a pair (a, b) becomes (a cos + b sin, b cos - a sin)."""
    rows: tl.constexpr = gradient.shape[0]
    width: tl.constexpr = gradient.shape[1]
    if INTERLEAVED:
        pairs = gradient.reshape(rows, width // 2, 2)
    else:
        pairs = gradient.reshape(rows, 2, width // 2).permute(0, 2, 1)
    first, second = tl.split(pairs)
    pairs = tl.join(first * cos + second * sin, second * cos - first * sin)
    if not INTERLEAVED:
        pairs = pairs.permute(0, 2, 1)
    return pairs.reshape(rows, width)


@triton.jit
def _block_diagonal_attention_backward_kernel(
    q, k, v, dout, dq, dk, dv, cos_sin, blocks, tiles, heads, scale, angle_token, q_token, q_head, k_token, k_head,
    v_token, v_head, dout_token, dout_head, dq_token, dq_head, dk_token, dk_head, dv_token, dv_head,
    BLOCK: tl.constexpr, HEAD_DIM: tl.constexpr, PERSISTENT: tl.constexpr, INTERLEAVED: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # Strides are named after what they step over: q_token is from one token of q to the next.
    first = tl.program_id(0)
    end = tiles if PERSISTENT else first + 1  # a loop of one step disappears: that saves some 40 registers
    for tile in range(first, end, tl.num_programs(0) if PERSISTENT else 1):
        start, length, head = _tile(blocks, tile, heads)
        b_q = _load(q + head * q_head, start, length, BLOCK, HEAD_DIM, q_token)  # [BLOCK, HEAD_DIM]
        b_k = _load(k + head * k_head, start, length, BLOCK, HEAD_DIM, k_token)  # [BLOCK, HEAD_DIM]
        b_do = _load(dout + head * dout_head, start, length, BLOCK, HEAD_DIM, dout_token)  # [BLOCK, HEAD_DIM]
        b_v = _load(v + head * v_head, start, length, BLOCK, HEAD_DIM, v_token)  # [BLOCK, HEAD_DIM]

        # Queries beyond the block's last have zeros in `b_do`, and keys beyond it the probability 0: they add nothing.
        p, l_i = _weights(b_q, b_k, length, scale, BLOCK)  # [BLOCK, BLOCK], [BLOCK, 1]
        p = p * (1.0 / l_i)
        b_dv = tl.dot(p.to(b_do.dtype).T, b_do)  # [BLOCK, HEAD_DIM]
        _store(dv + head * dv_head, b_dv, start, length, BLOCK, HEAD_DIM, dv_token)

        dp = tl.dot(b_do, b_v.T)  # [BLOCK, BLOCK]
        delta = tl.sum(p * dp, axis=1, keep_dims=True)  # the row sum of dout * out
        ds = (p * (dp - delta)).to(b_k.dtype)
        if cos_sin is not None:
            # [BLOCK, HEAD_DIM // 2]
            cos = _load(cos_sin, start, length, BLOCK, HEAD_DIM // 2, angle_token).to(tl.float32)
            # [BLOCK, HEAD_DIM // 2]
            sin = _load(cos_sin + HEAD_DIM // 2, start, length, BLOCK, HEAD_DIM // 2, angle_token).to(tl.float32)
        # One gradient is stored before the next is computed: both together do not fit the registers.
        b_dq = tl.dot(ds, b_k) * scale  # [BLOCK, HEAD_DIM]
        if cos_sin is not None:  # rotated in float32: the gradients are rounded once, when they are stored
            b_dq = _rotated_back(b_dq, cos, sin, INTERLEAVED)
        _store(dq + head * dq_head, b_dq, start, length, BLOCK, HEAD_DIM, dq_token)
        b_dk = tl.dot(ds.T, b_q) * scale  # [BLOCK, HEAD_DIM]
        if cos_sin is not None:
            b_dk = _rotated_back(b_dk, cos, sin, INTERLEAVED)
        _store(dk + head * dk_head, b_dk, start, length, BLOCK, HEAD_DIM, dk_token)


@plannable_apart
def block_diagonal_attention_backward(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    dout: torch.Tensor,
    blocks: torch.Tensor,
    *,
    cos_sin: torch.Tensor | None = None,
    interleaved: bool = False,
    scale: float | None = None,
    out: tuple[torch.Tensor, torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the gradients ``(dq, dk, dv)`` of ``block_diagonal_attention`` when that of its result is ``dout``.

    Nothing is needed from the forward pass: ``P = softmax(scale q k^T)`` is computed again, and with ``dP = dout v^T``
    the gradient of the scores is ``dS = P (dP - rowsum(P dP))``. Then ``dv = P^T dout``, ``dq = scale dS k`` and
    ``dk = scale dS^T q``. Formulas: Dao et al., "FlashAttention" (2022), appendix B.2. Computed in float32; P and dS
    are rounded to the inputs' dtype before they are multiplied, and in float16 dS must not exceed 65,504.

    With ``cos_sin``, ``q`` and ``k`` are the result of a rotary embedding (Su et al., "RoFormer" (2021), equation 34),
    and ``dq`` and ``dk`` are the gradients of what was rotated: each is turned back by the token's angles, in float32.

    - ``q``, ``k``, ``v``, ``dout``: [tokens, heads, head_dim], bfloat16 or float16 (in Triton's interpreter also
      float32), all of one dtype; head_dim is 64 or 128. Tokens and heads may be at any distance.
    - ``blocks``: [blocks, 2], int32, what ``list_blocks`` made of the sequences' lengths; that they are within
      ``tokens`` is not checked.
    - ``cos_sin``: [tokens, head_dim], of that dtype or float32: of each token head_dim / 2 cosines, then as many sines;
      rows may be strided.
    - ``interleaved``: pairs are two neighbours (GPT-J) instead of elements head_dim / 2 apart (GPT-NeoX).
    - ``scale``: positive; 1 / sqrt(head_dim) unless said otherwise.
    - ``out``: the results, each like ``q``. Tokens of no block are left as they are: undefined, where it is not given.

    Raises ValueError when a shape, dtype, device, stride or the scale is not as said.
    """
    dq, dk, dv = out or (allocated(torch.empty_like(q)), allocated(torch.empty_like(q)), allocated(torch.empty_like(q)))
    results = {"out[0]": dq, "out[1]": dk, "out[2]": dv}
    scale = check_heads(q, blocks, scale, q=q, k=k, v=v, dout=dout, **results)
    for name, tensor in results.items():
        check_written(name, tensor)
    for (name, tensor), (other_name, other) in itertools.combinations(results.items(), 2):
        check_apart(name, tensor, other_name, other)
    tokens, heads, head_dim = q.shape
    if cos_sin is not None:
        check_rows("cos_sin", cos_sin, (tokens, head_dim), (q.dtype, torch.float32), q)
    tiles = len(blocks) * heads if tokens else 0
    if tiles:
        choice = configure(head_dim, rotary=cos_sin is not None)
        programs = choice.count(tiles, q)
        with on_device_of(q):
            launch(
                _block_diagonal_attention_backward_kernel,
                (programs,),
                q=q,
                k=k,
                v=v,
                dout=dout,
                dq=dq,
                dk=dk,
                dv=dv,
                cos_sin=cos_sin,
                blocks=blocks,
                tiles=tiles,
                heads=heads,
                scale=scale,
                angle_token=0 if cos_sin is None else cos_sin.stride(0),
                **strides(q=q, k=k, v=v, dout=dout, dq=dq, dk=dk, dv=dv),
                BLOCK=BLOCK,
                HEAD_DIM=head_dim,
                PERSISTENT=programs < tiles,
                INTERLEAVED=interleaved,
                **choice.options(),
            )
    return dq, dk, dv
