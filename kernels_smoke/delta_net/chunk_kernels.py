"""What is carried from chunk to chunk: the state."""

from __future__ import annotations

import triton
import triton.language as tl

from kernels_smoke.delta_net.wy_representation import _bounds, _first_slot


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
