"""The gated delta rule over whole sequences, a chunk of tokens at a time: prefill."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.delta_net.arguments import EPSILON, check_contiguous, check_heads, check_numbers
from kernels_smoke.delta_net.wy_representation import _bounds, _first_slot, _prepare_kernel
from kernels_smoke.launch import DTYPES_16, architecture, check_rows, check_written, on_device_of, require


@dataclass(frozen=True)
class Configuration:
    """How the two launches are laid out.

    - ``chunk``: tokens that are worked on together, a power of two from 16 to 64.
    - ``block_v``: columns of the state that one program carries from chunk to chunk, with ``warps`` and ``stages``.
    - ``prepare_warps``: of a program that prepares one chunk.
    - ``precision``: of the products that invert a triangular matrix, as ``tl.dot`` names it.
    """

    chunk: int
    block_v: int
    warps: int
    stages: int
    prepare_warps: int
    precision: str = "tf32"


def configure() -> Configuration:
    """The layout for the present GPU: see "Layouts" in README.md."""
    here = architecture()
    if here.backend == "interpret":  # small, so that small cases have several chunks and blocks
        return Configuration(chunk=16, block_v=16, warps=4, stages=1, prepare_warps=4)
    if here.backend == "hip":
        return Configuration(chunk=32, block_v=32, warps=4, stages=1, prepare_warps=4, precision="ieee")
    if here.number == 90:
        return Configuration(chunk=32, block_v=64, warps=4, stages=4, prepare_warps=2)
    if 100 <= here.number < 120:  # four warps and more were compiled wrongly there: see ../miscompiles/README.md
        return Configuration(chunk=32, block_v=16, warps=2, stages=2, prepare_warps=2)
    return Configuration(chunk=32, block_v=32, warps=4, stages=2, prepare_warps=4)


@triton.jit
def _carry_kernel(
    q, k, v, cu_seqlens, squares, factors, initial_state, final_state, out, tokens,
    q_stride, q_head_stride, k_stride, k_head_stride, v_stride, v_head_stride, out_stride, out_head_stride,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, V: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One sequence, one value head, BLOCK_V columns of the state, which is transposed: [BLOCK_V, K]. So it is the
    # left operand of every product, and a tensor core of Hopper takes that from the registers in which it is.
    blocks: tl.constexpr = V // BLOCK_V
    program = tl.program_id(0).to(tl.int64)
    sequence = program // (blocks * VALUE_HEADS)
    head = program // blocks % VALUE_HEADS
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    tile = _first_slot(begin, sequence, CHUNK) * VALUE_HEADS + head

    o_t = tl.arange(0, CHUNK)
    row = o_t.to(tl.int64)
    o_k = tl.arange(0, K)
    o_v = (program % blocks).to(tl.int32) * BLOCK_V + tl.arange(0, BLOCK_V)
    q += begin * q_stride + head // GROUP * q_head_stride
    k += begin * k_stride + head // GROUP * k_head_stride
    v += begin * v_stride + head * v_head_stride
    out += begin * out_stride + head * out_head_stride
    squares += tile * 2 * CHUNK * CHUNK
    factors += tile * 4 * CHUNK
    o_square = o_t[:, None] * CHUNK + o_t[None, :]
    state_offset = (sequence * VALUE_HEADS + head) * K * V
    within = o_v[:, None] + o_k[None, :] * V
    state = tl.zeros((BLOCK_V, K), tl.float32)
    if initial_state is not None:
        state = tl.load(initial_state + state_offset + within)  # [BLOCK_V, K]
    step = tl.full((), CHUNK, tl.int64)  # strides may be beyond 2^31 / CHUNK
    for left in range(end - begin, 0, -CHUNK):
        present = row < left
        b_k = tl.load(k + row[:, None] * k_stride + o_k[None, :], mask=present[:, None], other=0.0)  # [CHUNK, K]
        b_q = tl.load(q + row[:, None] * q_stride + o_k[None, :], mask=present[:, None], other=0.0)  # [CHUNK, K]
        b_v = tl.load(v + row[:, None] * v_stride + o_v[None, :], mask=present[:, None], other=0.0)  # [CHUNK, BLOCK_V]
        b_t = tl.load(squares + o_square)  # [CHUNK, CHUNK]
        b_a = tl.load(squares + CHUNK * CHUNK + o_square)  # [CHUNK, CHUNK]
        k_factor = tl.load(factors + o_t)  # [CHUNK]
        q_factor = tl.load(factors + CHUNK + o_t)  # [CHUNK]
        delta_factor = tl.load(factors + 2 * CHUNK + o_t)  # [CHUNK]
        state_factor = tl.load(factors + 4 * CHUNK - 1)  # [1]

        b_s = state.to(b_k.dtype)
        predicted = tl.dot(b_s, b_k.T) * k_factor[None, :]  # [BLOCK_V, CHUNK]
        delta = tl.dot(b_v.T, b_t.T)  # [BLOCK_V, CHUNK]
        delta += tl.dot((-predicted).to(b_k.dtype), b_t.T)  # [BLOCK_V, CHUNK]
        b_o = tl.dot(b_s, b_q.T) * q_factor[None, :]  # [BLOCK_V, CHUNK]
        b_o += tl.dot(delta.to(b_k.dtype), b_a.T)  # [BLOCK_V, CHUNK]
        state = tl.dot((delta * delta_factor[None, :]).to(b_k.dtype), b_k, state * state_factor)  # [BLOCK_V, K]
        o_out = o_v[:, None] + row[None, :] * out_stride
        tl.store(out + o_out, b_o.to(out.dtype.element_ty), mask=present[None, :])
        q += step * q_stride
        k += step * k_stride
        v += step * v_stride
        out += step * out_stride
        squares += 2 * CHUNK * CHUNK * VALUE_HEADS
        factors += 4 * CHUNK * VALUE_HEADS
    if final_state is not None:
        tl.store(final_state + state_offset + within, state)


def gated_delta_rule_chunk(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    log_decay: torch.Tensor,
    beta: torch.Tensor,
    *,
    cu_seqlens: torch.Tensor | None = None,
    initial_state: torch.Tensor | None = None,
    scale: float | None = None,
    normalize: bool = False,
    out: torch.Tensor | None = None,
    final_state: torch.Tensor | None = None,
) -> torch.Tensor:
    """Return the output of the gated delta rule for every token of one or more sequences.

    For each value head, with a state S [depth, width] in float32, and each token t of a sequence in turn::

        S = exp(log_decay[t]) S
        S = S + k[t] (beta[t] (v[t] - S^T k[t]))^T
        out[t] = scale S^T q[t]

    Formula: Yang, Kautz and Hatamizadeh, "Gated Delta Networks" (2024), section 3.1; it is computed by chunks, as
    README.md derives it. What tensor cores multiply, the state among it, is rounded to the dtype of ``q``.

    - ``q``, ``k``: [tokens, key heads, depth], ``v``: [tokens, value heads, width], bfloat16 or float16, all of one
      dtype; a multiple of value heads shares each key head, in order. Depth and width are 16, 32, 64 or 128. The
      elements of a head are contiguous; heads and tokens may be at any distance.
    - ``log_decay`` (at most 0; minus infinity begins again, behind a finite state) and ``beta``: [tokens, value heads],
      of that dtype or float32.
    - ``cu_seqlens``: [sequences + 1], int32 or int64, from 0 to the number of tokens, never falling: where each
      sequence begins and the last one ends. One sequence without it. Its values are not checked.
    - ``initial_state``: [sequences, value heads, depth, width], float32; zero without it.
    - ``scale``: depth^-0.5 unless it is given.
    - ``normalize``: divide each q[t] and k[t] by sqrt(its squared norm + 1e-6). What is multiplied with keys is scaled
      by the inverse of their norms: in float16, values over norms must be within 1e-4 and 6e4.
    - ``out``: the result, like ``v``. ``final_state``: takes the states behind the last tokens, like
      ``initial_state``, and may be the same tensor.

    Raises ValueError when a shape, dtype, device or stride is not as said.
    """
    tokens, key_heads, value_heads, depth, width = check_heads(q, k, v, log_decay, beta, DTYPES_16)
    sequences = 1
    if cu_seqlens is not None:
        require(cu_seqlens.ndim == 1 and len(cu_seqlens) > 0, "cu_seqlens must be [sequences + 1]")
        sequences = len(cu_seqlens) - 1
        check_numbers("cu_seqlens", cu_seqlens, (sequences + 1,), q)
        require(sequences > 0 or not tokens, f"cu_seqlens has no sequence for {tokens} tokens")
    for name, state in (("initial_state", initial_state), ("final_state", final_state)):
        if state is not None:
            check_contiguous(name, state, (sequences, value_heads, depth, width), q)
    out = torch.empty_like(v) if out is None else out
    check_rows("out", out, (tokens, value_heads, width), (q.dtype,), q)
    check_written("out", out)
    if not sequences:
        return out

    with on_device_of(q):
        choice = configure()
        tiles = (tokens // choice.chunk + sequences) * value_heads
        squares = q.new_empty((tiles, 2, choice.chunk, choice.chunk))
        factors = q.new_empty((tiles, 4, choice.chunk), dtype=torch.float32)
        heads = {"VALUE_HEADS": value_heads, "GROUP": value_heads // key_heads}
        _prepare_kernel[(tiles,)](
            q=q,
            k=k,
            log_decay=log_decay,
            beta=beta,
            cu_seqlens=cu_seqlens,
            squares=squares,
            factors=factors,
            tokens=tokens,
            sequences=sequences,
            q_stride=q.stride(0),
            q_head_stride=q.stride(1),
            k_stride=k.stride(0),
            k_head_stride=k.stride(1),
            log_decay_stride=log_decay.stride(0),
            beta_stride=beta.stride(0),
            scale=depth**-0.5 if scale is None else scale,
            epsilon=EPSILON,
            **heads,
            K=depth,
            CHUNK=choice.chunk,
            NORMALIZE=normalize,
            PRECISION=choice.precision,
            num_warps=choice.prepare_warps,
        )
        block_v = min(choice.block_v, width)
        _carry_kernel[(sequences * value_heads * (width // block_v),)](
            q=q,
            k=k,
            v=v,
            cu_seqlens=cu_seqlens,
            squares=squares,
            factors=factors,
            initial_state=initial_state,
            final_state=final_state,
            out=out,
            tokens=tokens,
            q_stride=q.stride(0),
            q_head_stride=q.stride(1),
            k_stride=k.stride(0),
            k_head_stride=k.stride(1),
            v_stride=v.stride(0),
            v_head_stride=v.stride(1),
            out_stride=out.stride(0),
            out_head_stride=out.stride(1),
            **heads,
            K=depth,
            V=width,
            CHUNK=choice.chunk,
            BLOCK_V=block_v,
            num_warps=choice.warps,
            num_stages=choice.stages,
        )
    return out
