"""The gated delta rule over whole sequences, a chunk of tokens at a time: prefill."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.delta_net.arguments import EPSILON, check_contiguous, check_heads, check_numbers
from kernels_smoke.delta_net.wy_representation import _bounds, _first_slot, _prepare_kernel
from kernels_smoke.launch import (
    DTYPES_16,
    architecture,
    check_rows,
    check_written,
    multiprocessors,
    on_device_of,
    require,
)


@dataclass(frozen=True)
class Configuration:
    """How the two launches are laid out.

    - ``chunk``: tokens that are worked on together, a power of two from 16 to 64.
    - ``block_v``: columns of the state that one program carries from chunk to chunk, with ``warps`` and ``stages``.
    - ``share``: per cent of a sequence whose outputs its first program writes where two work on it, which they do when
      there are multiprocessors for both. 100: there is always one.
    - ``block``, ``prepare_warps``: tokens of a block, and warps of a program, that prepares one chunk.
    - ``precision``: of the products that invert a triangular matrix, as ``tl.dot`` names it.
    """

    chunk: int
    block_v: int
    warps: int
    stages: int
    share: int
    block: int = 16
    prepare_warps: int = 1
    precision: str = "tf32"


def configure() -> Configuration:
    """The layout for the present GPU: see "Layouts" in README.md."""
    here = architecture()
    if here.backend == "interpret":  # small, so that small cases have several chunks, blocks and parts
        return Configuration(chunk=32, block_v=16, warps=4, stages=1, share=60)
    if here.backend == "hip":
        return Configuration(chunk=32, block_v=32, warps=4, stages=1, share=70, precision="ieee")
    if here.number == 90:
        return Configuration(chunk=32, block_v=64, warps=4, stages=3, share=70)
    if 100 <= here.number < 120:  # four warps and more were compiled wrongly there: see ../miscompiles/README.md
        return Configuration(chunk=32, block_v=16, warps=2, stages=2, share=70)
    return Configuration(chunk=32, block_v=32, warps=4, stages=2, share=70)


@triton.jit
def _walk(
    state, first, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride, o_v,
    HEADS: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr, FAR: tl.constexpr, OUTPUT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Carry ``state`` [BLOCK_V, K] through tokens ``first`` to ``last`` of a sequence of ``length``; return it.

    ``first`` begins a chunk. Pointers are those of the sequence's first token and chunk. With ``OUTPUT``, the outputs
    of these tokens are written.
    """
    o_t = tl.arange(0, CHUNK)
    o_k = tl.arange(0, K)
    row = o_t.to(tl.int64) if FAR else o_t  # fewer registers without
    o_square = o_t[:, None] * CHUNK + o_t[None, :]
    step = tl.full((), CHUNK, tl.int64)  # strides may be beyond 2^31 / CHUNK
    q += first * q_stride
    k += first * k_stride
    v += first * v_stride
    out += first * out_stride
    squares += first // CHUNK * HEADS * 2 * CHUNK * CHUNK
    factors += first // CHUNK * HEADS * 4 * CHUNK
    # Triton loads ahead only what products take: this is loaded a chunk ahead here.
    state_factor = tl.load(factors + 3 * CHUNK, mask=first < last, other=0.0)  # [1]
    for token in range(first, last, CHUNK):
        present = o_t < tl.minimum(length - token, CHUNK).to(tl.int32)
        more = token + CHUNK < last
        next_factors = factors + HEADS * 4 * CHUNK
        next_state_factor = tl.load(next_factors + 3 * CHUNK, mask=more, other=0.0)  # [1]
        b_k = tl.load(k + row[:, None] * k_stride + o_k[None, :], mask=present[:, None], other=0.0)  # [CHUNK, K]
        b_v = tl.load(v + row[:, None] * v_stride + o_v[None, :], mask=present[:, None], other=0.0)  # [CHUNK, BLOCK_V]
        b_t = tl.load(squares + o_square)  # [CHUNK, CHUNK]
        k_factor = tl.load(factors + o_t)  # [CHUNK]
        delta_factor = tl.load(factors + 2 * CHUNK + o_t)  # [CHUNK]

        b_s = state.to(b_k.dtype)
        predicted = tl.dot(b_s, b_k.T) * k_factor[None, :]  # [BLOCK_V, CHUNK]
        delta = tl.dot(b_v.T, b_t.T)  # [BLOCK_V, CHUNK]
        delta += tl.dot((-predicted).to(b_k.dtype), b_t.T)  # [BLOCK_V, CHUNK]
        if OUTPUT:
            b_q = tl.load(q + row[:, None] * q_stride + o_k[None, :], mask=present[:, None], other=0.0)  # [CHUNK, K]
            b_a = tl.load(squares + CHUNK * CHUNK + o_square)  # [CHUNK, CHUNK]
            q_factor = tl.load(factors + CHUNK + o_t)  # [CHUNK]
            b_o = tl.dot(b_s, b_q.T) * q_factor[None, :]  # [BLOCK_V, CHUNK]
            b_o += tl.dot(delta.to(b_k.dtype), b_a.T)  # [BLOCK_V, CHUNK]
            o_out = o_v[:, None] + row[None, :] * out_stride
            tl.store(out + o_out, b_o.to(out.dtype.element_ty), mask=present[None, :])
            q += step * q_stride
            out += step * out_stride
        state = tl.dot((delta * delta_factor[None, :]).to(b_k.dtype), b_k, state * state_factor)  # [BLOCK_V, K]
        k += step * k_stride
        v += step * v_stride
        squares += HEADS * 2 * CHUNK * CHUNK
        factors = next_factors
        state_factor = next_state_factor
    return state


@triton.jit(do_not_specialize=["share"])
def _carry_kernel(
    q, k, v, cu_seqlens, squares, factors, initial_state, final_state, out, tokens,
    q_stride, q_head_stride, k_stride, k_head_stride, v_stride, v_head_stride, out_stride, out_head_stride, share,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, V: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr, PARTS: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One sequence, one value head, BLOCK_V columns of the state, which is transposed: [BLOCK_V, K]. So it is the
    # left operand of every product, and a tensor core of Hopper takes that from the registers in which it is.
    # With two parts, one program writes the outputs of `share` per cent of the chunks. Another carries the state
    # through these, and writes the outputs of the others. Neither waits: both begin with the initial state.
    blocks: tl.constexpr = V // BLOCK_V
    program = tl.program_id(0).to(tl.int64)
    part = PARTS - 1 - program % PARTS
    sequence = program // (PARTS * blocks * VALUE_HEADS)
    head = program // (PARTS * blocks) % VALUE_HEADS
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    tile = _first_slot(begin, sequence, CHUNK) * VALUE_HEADS + head

    o_k = tl.arange(0, K)
    o_v = (program // PARTS % blocks).to(tl.int32) * BLOCK_V + tl.arange(0, BLOCK_V)
    q += begin * q_stride + head // GROUP * q_head_stride
    k += begin * k_stride + head // GROUP * k_head_stride
    v += begin * v_stride + head * v_head_stride
    out += begin * out_stride + head * out_head_stride
    squares += tile * 2 * CHUNK * CHUNK
    factors += tile * 4 * CHUNK
    state_offset = (sequence * VALUE_HEADS + head) * K * V
    within = o_v[:, None] + o_k[None, :] * V
    state = tl.zeros((BLOCK_V, K), tl.float32)
    if initial_state is not None:
        state = tl.load(initial_state + state_offset + within)  # [BLOCK_V, K]
    length = end - begin
    first = length * 0
    last = length
    if PARTS == 2:
        middle = tl.cdiv(length, CHUNK) * share // 100 * CHUNK
        if part == 1:
            state = _walk(
                state, first, middle, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
                o_v, HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, OUTPUT=False,
            )  # fmt: skip  # as it is declared
            first = middle
        else:
            last = middle
    state = _walk(
        state, first, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
        o_v, HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, OUTPUT=True,
    )  # fmt: skip  # as it is declared
    if final_state is not None:
        tl.store(final_state + state_offset + within, state, mask=part == PARTS - 1)  # [BLOCK_V, K]


def _same_memory(one: torch.Tensor, other: torch.Tensor | None) -> bool:
    return other is not None and not one.is_meta and one.data_ptr() == other.data_ptr()


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
        _prepare_kernel[(tiles // (value_heads // key_heads),)](
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
            BLOCK=choice.block,
            NORMALIZE=normalize,
            PRECISION=choice.precision,
            num_warps=choice.prepare_warps,
        )
        block_v = min(choice.block_v, width)
        programs = sequences * value_heads * (width // block_v)
        parts = 2 if choice.share < 100 and 2 * programs <= multiprocessors(q, 132 if q.is_meta else 16) else 1
        if parts == 2 and initial_state is not None and _same_memory(initial_state, final_state):
            initial_state = initial_state.clone()  # one program may write it before the other has read it
        _carry_kernel[(programs * parts,)](
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
            share=choice.share,
            **heads,
            K=depth,
            V=width,
            CHUNK=choice.chunk,
            BLOCK_V=block_v,
            PARTS=parts,
            FAR=max(tensor.stride(0) for tensor in (q, k, v, out)) * choice.chunk >= 2**31,
            num_warps=choice.warps,
            num_stages=choice.stages,
        )
    return out
