"""What is carried from chunk to chunk: the state, by segments of a sequence that are worked on at the same time."""

import triton
import triton.language as tl

from kernels_smoke.delta_net.wy_representation import _bounds, _first_slot


@triton.jit
def _walk(
    state, first, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride, o_v,
    HEADS: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr, FAR: tl.constexpr, VALUES: tl.constexpr,
    OUTPUT: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Carry ``state`` [BLOCK_V, K] through tokens ``first`` to ``last`` of a sequence of ``length``; return it.

    ``first`` begins a chunk. Pointers are those of the sequence's first token and chunk. Without ``VALUES``, values are
    zero. With ``OUTPUT``, the outputs of these tokens are written.
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
    # Triton loads ahead only what left and right operands are made of: the others are loaded a chunk ahead here.
    some = first < last
    state_factor = tl.load(factors + 3 * CHUNK, mask=some, other=0.0)  # [1]
    q_factor = tl.load(factors + CHUNK + o_t, mask=some & (o_t >= 0), other=0.0)  # [CHUNK]
    for token in range(first, last, CHUNK):
        present = o_t < tl.minimum(length - token, CHUNK).to(tl.int32)
        more = token + CHUNK < last
        next_factors = factors + HEADS * 4 * CHUNK
        next_state_factor = tl.load(next_factors + 3 * CHUNK, mask=more, other=0.0)  # [1]
        b_k = tl.load(k + row[:, None] * k_stride + o_k[None, :], mask=present[:, None], other=0.0)  # [CHUNK, K]
        b_t = tl.load(squares + o_square)  # [CHUNK, CHUNK]
        k_factor = tl.load(factors + o_t)  # [CHUNK]
        delta_factor = tl.load(factors + 2 * CHUNK + o_t)  # [CHUNK]

        b_s = state.to(b_k.dtype)
        predicted = tl.dot(b_s, b_k.T) * k_factor[None, :]  # [BLOCK_V, CHUNK]
        if VALUES:
            b_v = tl.load(v + row[:, None] * v_stride + o_v[None, :], mask=present[:, None], other=0.0)
            delta = tl.dot(b_v.T, b_t.T)  # [BLOCK_V, CHUNK]
            delta += tl.dot((-predicted).to(b_k.dtype), b_t.T)  # [BLOCK_V, CHUNK]
        else:
            delta = tl.dot((-predicted).to(b_k.dtype), b_t.T)  # [BLOCK_V, CHUNK]
        if OUTPUT:
            b_q = tl.load(q + row[:, None] * q_stride + o_k[None, :], mask=present[:, None], other=0.0)  # [CHUNK, K]
            b_a = tl.load(squares + CHUNK * CHUNK + o_square)  # [CHUNK, CHUNK]
            next_q_factor = tl.load(next_factors + CHUNK + o_t, mask=more & (o_t >= 0), other=0.0)  # [CHUNK]
            b_o = tl.dot(b_s, b_q.T) * q_factor[None, :]  # [BLOCK_V, CHUNK]
            b_o += tl.dot(delta.to(b_k.dtype), b_a.T)  # [BLOCK_V, CHUNK]
            o_out = o_v[:, None] + row[None, :] * out_stride
            tl.store(out + o_out, b_o.to(out.dtype.element_ty), mask=present[None, :])
            q_factor = next_q_factor
        remaining = state * state_factor  # [BLOCK_V, K]
        state = tl.dot((delta * delta_factor[None, :]).to(b_k.dtype), b_k, remaining)  # [BLOCK_V, K]
        q += step * q_stride
        k += step * k_stride
        v += step * v_stride
        out += step * out_stride
        squares += HEADS * 2 * CHUNK * CHUNK
        factors = next_factors
        state_factor = next_state_factor
    return state


@triton.jit
def _segment_bounds(length, segment, segments, CHUNK: tl.constexpr):
    """The first token of ``segment``, and the first one behind it: all have as many chunks, or one more."""
    chunks = tl.cdiv(length, CHUNK)
    first = chunks * segment // segments * CHUNK
    return first, tl.minimum(chunks * (segment + 1) // segments * CHUNK, length)


@triton.jit(do_not_specialize=["rows", "segments"])
def _segments_kernel(
    q, k, v, cu_seqlens, squares, factors, initial_state, states, transitions, out, tokens, rows, segments,
    q_stride, q_head_stride, k_stride, k_head_stride, v_stride, v_head_stride, out_stride, out_head_stride,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, V: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # A segment turns the state S before it into A S + B. A program carries BLOCK_V columns of B, from zero, or of A,
    # from the identity and without values. The first segment has the initial state, and so its outputs; the last one is
    # left to _carry_kernel. Both results are stored as they are, transposed: B [V, K] in float32, A [K, K] rounded.
    # The programs of A are launched first, and those of B last, so that these two share multiprocessors.
    of_a = (segments - 2) * (K // BLOCK_V)  # programs of a row, which is a value head of a sequence
    of_b = (segments - 2) * (V // BLOCK_V)
    program = tl.program_id(0).to(tl.int64)
    begun = program - rows * of_a
    block_v = begun - rows * (V // BLOCK_V)
    if begun < 0:
        row = program // of_a
        segment = (program % of_a // (K // BLOCK_V)).to(tl.int32) + 1
        block = (program % (K // BLOCK_V)).to(tl.int32)
    elif block_v < 0:
        row = begun // (V // BLOCK_V)
        segment = 0
        block = (begun % (V // BLOCK_V)).to(tl.int32)
    else:
        row = block_v // of_b
        segment = (block_v % of_b // (V // BLOCK_V)).to(tl.int32) + 1
        block = (block_v % (V // BLOCK_V)).to(tl.int32)
    sequence = row // VALUE_HEADS
    head = row % VALUE_HEADS
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    tile = _first_slot(begin, sequence, CHUNK) * VALUE_HEADS + head

    o_k = tl.arange(0, K)
    o_v = block * BLOCK_V + tl.arange(0, BLOCK_V)
    q += begin * q_stride + head // GROUP * q_head_stride
    k += begin * k_stride + head // GROUP * k_head_stride
    v += begin * v_stride + head * v_head_stride
    out += begin * out_stride + head * out_head_stride
    squares += tile * 2 * CHUNK * CHUNK
    factors += tile * 4 * CHUNK
    length = end - begin
    first, last = _segment_bounds(length, segment, segments, CHUNK)
    within = o_v[:, None] * K + o_k[None, :]
    if begun < 0:
        state = tl.where(o_k[None, :] == o_v[:, None], 1.0, 0.0)  # [BLOCK_V, K]
        state = _walk(
            state, first, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
            o_v, HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, VALUES=False, OUTPUT=False,
        )  # fmt: skip  # as it is declared
        transitions += (row * (segments - 2) + segment - 1) * K * K
        tl.store(transitions + within, state.to(transitions.dtype.element_ty))  # [BLOCK_V, K]
    else:
        state = tl.zeros((BLOCK_V, K), tl.float32)
        if segment == 0:
            if initial_state is not None:
                state = tl.load(initial_state + row * K * V + o_v[:, None] + o_k[None, :] * V)  # [BLOCK_V, K]
            state = _walk(
                state, first, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
                o_v, HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, VALUES=True, OUTPUT=True,
            )  # fmt: skip  # as it is declared
        else:
            state = _walk(
                state, first, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
                o_v, HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, VALUES=True, OUTPUT=False,
            )  # fmt: skip  # as it is declared
        tl.store(states + (row * (segments - 1) + segment) * V * K + within, state)  # [BLOCK_V, K]


@triton.jit(do_not_specialize=["segments"])
def _carry_kernel(
    q, k, v, cu_seqlens, squares, factors, initial_state, states, transitions, final_state, out, tokens, segments,
    q_stride, q_head_stride, k_stride, k_head_stride, v_stride, v_head_stride, out_stride, out_head_stride,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, V: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr, SPLIT: tl.constexpr, FAR: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One sequence, one value head, BLOCK_V columns of the state, which is transposed: [BLOCK_V, K]. So it is the
    # left operand of every product, and a tensor core of Hopper takes that from the registers in which it is.
    # When sequences are split, this is one segment of it but the first; what the segments before it did is known.
    blocks: tl.constexpr = V // BLOCK_V
    parts = segments - 1 if SPLIT else 1
    program = tl.program_id(0).to(tl.int64)
    segment = (segments - 1 - program % parts).to(tl.int32)
    row = program // (parts * blocks)  # of sequences and value heads
    sequence = row // VALUE_HEADS
    head = row % VALUE_HEADS
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    tile = _first_slot(begin, sequence, CHUNK) * VALUE_HEADS + head

    o_k = tl.arange(0, K)
    o_v = (program // parts % blocks).to(tl.int32) * BLOCK_V + tl.arange(0, BLOCK_V)
    within = row * K * V + o_v[:, None] + o_k[None, :] * V
    length = end - begin
    first = length * 0
    last = length
    state = tl.zeros((BLOCK_V, K), tl.float32)
    if SPLIT:
        first, last = _segment_bounds(length, segment, segments, CHUNK)
        states += row * (segments - 1) * V * K + o_v[:, None] * K + o_k[None, :]
        transitions += row * (segments - 2) * K * K + o_k[:, None] * K + o_k[None, :]
        state = tl.load(states)  # [BLOCK_V, K]
        for before in tl.range(1, segment, num_stages=1):
            b_b = tl.load(states + before * V * K)  # [BLOCK_V, K]
            b_a = tl.load(transitions + (before - 1) * K * K)  # [K, K]
            state = tl.dot(state.to(b_a.dtype), b_a, b_b)  # [BLOCK_V, K]
    elif initial_state is not None:
        state = tl.load(initial_state + within)  # [BLOCK_V, K]
    state = _walk(
        state, first, last, length, q + begin * q_stride + head // GROUP * q_head_stride,
        k + begin * k_stride + head // GROUP * k_head_stride, v + begin * v_stride + head * v_head_stride,
        squares + tile * 2 * CHUNK * CHUNK, factors + tile * 4 * CHUNK,
        out + begin * out_stride + head * out_head_stride, q_stride, k_stride, v_stride, out_stride,
        o_v, HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, VALUES=True, OUTPUT=True,
    )  # fmt: skip  # as it is declared
    if final_state is not None:
        mask = (o_v >= 0)[:, None] & (segment == segments - 1)
        tl.store(final_state + within, state, mask=mask)  # [BLOCK_V, K]
