"""A recurrent state that decays, is read by one product, and is the accumulator of another."""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import DTYPES_16, check_rows, interpreted, on_device_of, require

CHUNK = 64  # tokens that share a decay


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out: columns of the state that one program keeps, and stages of its loop."""

    block_v: int
    stages: int


def configure() -> Configuration:
    """The layout: that for which most faults were reported, or a smaller one for the interpreter."""
    return Configuration(block_v=16, stages=1) if interpreted() else Configuration(block_v=32, stages=2)


@triton.jit
def _decayed_accumulator_kernel(
    q, k, v, decay, w, out, final, tokens, width, CHUNK: tl.constexpr, K: tl.constexpr, BLOCK_V: tl.constexpr
):
    head = tl.program_id(0).to(tl.int64)
    chunks = tl.cdiv(tokens, CHUNK)
    o_k = tl.arange(0, K)
    o_v = tl.program_id(1) * BLOCK_V + tl.arange(0, BLOCK_V)
    state = tl.zeros((K, BLOCK_V), tl.float32)
    for chunk in range(chunks):
        row = chunk * CHUNK + tl.arange(0, CHUNK)
        keys = (head * tokens + row)[:, None] * K + o_k[None, :]
        values = (head * tokens + row)[:, None] * width + o_v[None, :]
        is_value = (row < tokens)[:, None] & (o_v < width)[None, :]
        b_q = tl.load(q + keys, mask=(row < tokens)[:, None], other=0.0)  # [CHUNK, K]
        b_k = tl.load(k + keys, mask=(row < tokens)[:, None], other=0.0)  # [CHUNK, K]
        b_v = tl.load(v + values, mask=is_value, other=0.0)  # [CHUNK, BLOCK_V]
        b_s = state.to(b_q.dtype)
        tl.store(out + values, tl.dot(b_q, b_s), mask=is_value)  # [CHUNK, BLOCK_V]
        if w is not None:
            b_w = tl.load(w + keys, mask=(row < tokens)[:, None], other=0.0)  # [CHUNK, K]
            b_v = (b_v - tl.dot(b_w, b_s)).to(b_k.dtype)  # [CHUNK, BLOCK_V]
        state *= tl.load(decay + head * chunks + chunk)  # [1]
        state = tl.dot(b_k.T, b_v, state)  # [K, BLOCK_V]
    last = (head * K + o_k)[:, None] * width + o_v[None, :]
    tl.store(final + last, state, mask=(o_v < width)[None, :])


def decayed_accumulator(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    decay: torch.Tensor,
    w: torch.Tensor | None = None,
    *,
    warps: int = 4,
    out: tuple[torch.Tensor, torch.Tensor] | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return ``(readings, final state)`` of a state S that starts at zero and takes up 64 tokens at a time.

    For each chunk c of 64 tokens: the reading is ``q[c] @ S``, then ``S = decay[c] * S + k[c]^T @ v[c]``. With ``w``,
    ``v[c] - w[c] @ S`` replaces ``v[c]``: the recurrence over chunks of the gated delta net (Yang, Kautz and
    Hatamizadeh, "Gated Delta Networks", 2024, section 3.3). S is kept in float32, and rounded to the dtype of ``q``
    where a product reads it; so is what replaces ``v``.

    - ``q``, ``k``, ``w``: [heads, tokens, depth], depth 16, 32, 64 or 128; ``v``: [heads, tokens, width]; all bfloat16
      or all float16. ``decay``: [heads, ceil(tokens / 64)], float32. All are contiguous.
    - ``warps``: of one program. Four and more is where compilers went wrong.
    - ``out``: the two results, float32: [heads, tokens, width] and [heads, depth, width].

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    require(q.ndim == 3 and v.ndim == 3, f"q and v must be 3-dimensional, not {q.ndim}- and {v.ndim}-dimensional")
    heads, tokens, depth = q.shape
    width = v.shape[2]
    require(depth in {16, 32, 64, 128}, f"q has the depth {depth}; 16, 32, 64 and 128 are possible")
    if out is None:
        out = (v.new_empty(v.shape, dtype=torch.float32), v.new_empty((heads, depth, width), dtype=torch.float32))
    operands = [("q", q, depth), ("k", k, depth), ("v", v, width), *([] if w is None else [("w", w, depth)])]
    for name, tensor, last in operands:
        check_rows(name, tensor, (heads, tokens, last), DTYPES_16 if tensor is q else (q.dtype,), q)
    check_rows("decay", decay, (heads, triton.cdiv(tokens, CHUNK)), (torch.float32,), q)
    check_rows("out[0]", out[0], (heads, tokens, width), (torch.float32,), q)
    check_rows("out[1]", out[1], (heads, depth, width), (torch.float32,), q)
    for name, tensor in (*((name, tensor) for name, tensor, _ in operands), ("decay", decay), ("out", out[0])):
        require(tensor.is_contiguous(), f"{name} must be contiguous")
    require(out[1].is_contiguous(), "out must be contiguous")
    require(warps in {1, 2, 4, 8, 16}, f"a program has 1, 2, 4, 8 or 16 warps, not {warps}")
    require(width <= 2**20, f"v has {width} columns; {2**20} are possible")
    if heads and width:
        choice = configure()
        with on_device_of(q):
            _decayed_accumulator_kernel[(heads, triton.cdiv(width, choice.block_v))](
                q=q,
                k=k,
                v=v,
                decay=decay,
                w=w,
                out=out[0],
                final=out[1],
                tokens=tokens,
                width=width,
                CHUNK=CHUNK,
                K=depth,
                BLOCK_V=choice.block_v,
                num_warps=warps,
                num_stages=choice.stages,
            )
    return out
