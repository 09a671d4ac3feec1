"""The gated delta rule over whole sequences, a chunk of tokens at a time: prefill."""

from __future__ import annotations

from collections.abc import Mapping
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
from kernels_smoke.matmul.tiles import described, descriptor


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
    registers: int | None = None
    precision: str = "tf32"
    describe: bool = True


def configure() -> Configuration:
    """The layout for the present GPU: see "Layouts" in README.md."""
    here = architecture()
    if here.backend == "interpret":  # small, so that small cases have several chunks, blocks and parts
        return Configuration(chunk=32, block_v=16, warps=4, stages=1, share=60)
    if here.backend == "hip":
        return Configuration(chunk=32, block_v=32, warps=4, stages=1, share=70, precision="ieee")
    if here.number == 90:
        return Configuration(chunk=32, block_v=64, warps=4, stages=4, share=70)
    if 100 <= here.number < 120:  # four warps and more were compiled wrongly there: see ../miscompiles/README.md
        return Configuration(chunk=32, block_v=16, warps=2, stages=2, share=70)
    return Configuration(chunk=32, block_v=32, warps=4, stages=2, share=70)


@triton.jit
def _walk(  # noqa: PLR0915  # one loop, with and without outputs, descriptors or pointers
    state, first, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
    q_tiles, k_tiles, v_tiles, square_tiles, token_row, key_column, value_column, square_row, o_v,
    HEADS: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr, FAR: tl.constexpr, OUTPUT: tl.constexpr,
    STAGES: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides; descriptors, where a sequence begins in each; constants
    """Carry ``state`` [BLOCK_V, K] through tokens ``first`` to ``last`` of a sequence of ``length``; return it.

    ``first`` begins a chunk, and with descriptors, the last chunk is a whole one. Pointers are those of the sequence's
    first token and chunk. With ``OUTPUT``, the outputs of these tokens are written.
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
    state_factor = tl.load(factors + 3 * CHUNK, mask=first < last, other=0.0)  # [1]
    if OUTPUT:
        q_factor = tl.load(factors + CHUNK + o_t, mask=(first < last) & (o_t >= 0), other=0.0)  # [CHUNK]
    for token in tl.range(first, last, CHUNK, num_stages=STAGES):
        present = o_t < tl.minimum(length - token, CHUNK).to(tl.int32)
        if k_tiles is not None:
            token_place = (token_row + token).to(tl.int32)
            square_place = (square_row + token * (2 * HEADS)).to(tl.int32)
            b_k = k_tiles.load([token_place, key_column])  # [CHUNK, K]
            b_v = v_tiles.load([token_place, value_column])  # [CHUNK, BLOCK_V]
            b_t = square_tiles.load([square_place, 0])  # [CHUNK, CHUNK]
        else:
            b_k = tl.load(k + row[:, None] * k_stride + o_k[None, :], mask=present[:, None], other=0.0)  # [CHUNK, K]
            # [CHUNK, BLOCK_V]
            b_v = tl.load(v + row[:, None] * v_stride + o_v[None, :], mask=present[:, None], other=0.0)
            b_t = tl.load(squares + o_square)  # [CHUNK, CHUNK]
        k_factor = tl.load(factors + o_t)  # [CHUNK]
        delta_factor = tl.load(factors + 2 * CHUNK + o_t)  # [CHUNK]

        b_s = state.to(b_k.dtype)
        predicted = tl.dot(b_s, b_k.T) * k_factor[None, :]  # [BLOCK_V, CHUNK]
        # Triton loads ahead only what products take. These are loaded a chunk ahead, and behind the first product, for
        # which a thread without descriptors waits until all of its loads are there.
        factors += HEADS * 4 * CHUNK
        more = token + CHUNK < last
        next_state_factor = tl.load(factors + 3 * CHUNK, mask=more, other=0.0)  # [1]
        if OUTPUT:
            next_q_factor = tl.load(factors + CHUNK + o_t, mask=more & (o_t >= 0), other=0.0)  # [CHUNK]
        delta = tl.dot(b_v.T, b_t.T)  # [BLOCK_V, CHUNK]
        delta += tl.dot((-predicted).to(b_k.dtype), b_t.T)  # [BLOCK_V, CHUNK]
        if OUTPUT:
            if k_tiles is not None:
                b_q = q_tiles.load([token_place, key_column])  # [CHUNK, K]
                b_a = square_tiles.load([square_place + CHUNK, 0])  # [CHUNK, CHUNK]
            else:
                # [CHUNK, K]
                b_q = tl.load(q + row[:, None] * q_stride + o_k[None, :], mask=present[:, None], other=0.0)
                b_a = tl.load(squares + CHUNK * CHUNK + o_square)  # [CHUNK, CHUNK]
            b_o = tl.dot(b_s, b_q.T) * q_factor[None, :]  # [BLOCK_V, CHUNK]
            b_o += tl.dot(delta.to(b_k.dtype), b_a.T)  # [BLOCK_V, CHUNK]
            o_out = o_v[:, None] + row[None, :] * out_stride
            tl.store(out + o_out, b_o.to(out.dtype.element_ty), mask=present[None, :])
            q_factor = next_q_factor
            q += step * q_stride
            out += step * out_stride
        state = tl.dot((delta * delta_factor[None, :]).to(b_k.dtype), b_k, state * state_factor)  # [BLOCK_V, K]
        state_factor = next_state_factor
        k += step * k_stride
        v += step * v_stride
        squares += HEADS * 2 * CHUNK * CHUNK
    return state


@triton.jit(do_not_specialize=["share"])
def _carry_kernel(
    q, k, v, cu_seqlens, squares, factors, initial_state, final_state, out, tokens,
    q_stride, q_head_stride, k_stride, k_head_stride, v_stride, v_head_stride, out_stride, out_head_stride, share,
    q_tiles, k_tiles, v_tiles, square_tiles,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, V: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr, PARTS: tl.constexpr, FAR: tl.constexpr, STAGES: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, descriptors of tensors or None, constants
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
    key_column = (head // GROUP).to(tl.int32) * K
    value_column = head.to(tl.int32) * V + (program // PARTS % blocks).to(tl.int32) * BLOCK_V
    square_row = tile * (2 * CHUNK)
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
                q_tiles, k_tiles, v_tiles, square_tiles, begin, key_column, value_column, square_row, o_v,
                HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, OUTPUT=False, STAGES=STAGES,
            )  # fmt: skip  # as it is declared
            first = middle
        else:
            last = middle
    whole = last
    if k_tiles is not None:  # what lies behind a sequence is not masked in a tile that a descriptor loads
        whole = last // CHUNK * CHUNK
    state = _walk(
        state, first, whole, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
        q_tiles, k_tiles, v_tiles, square_tiles, begin, key_column, value_column, square_row, o_v,
        HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, OUTPUT=True, STAGES=STAGES,
    )  # fmt: skip  # as it is declared
    if k_tiles is not None:
        state = _walk(
            state, whole, last, length, q, k, v, squares, factors, out, q_stride, k_stride, v_stride, out_stride,
            None, None, None, None, begin, key_column, value_column, square_row, o_v,
            HEADS=VALUE_HEADS, K=K, CHUNK=CHUNK, FAR=FAR, OUTPUT=True, STAGES=1,
        )  # fmt: skip  # as it is declared
    if final_state is not None:
        tl.store(final_state + state_offset + within, state, mask=part == PARTS - 1)  # [BLOCK_V, K]


def _described(choice: Configuration, block_v: int, tensors: Mapping[str, torch.Tensor]) -> dict[str, object]:
    """Descriptors of q, k, v and of the squares, by the name of their arguments; None where there can be none."""
    rows = {name: _rows(tensor) for name, tensor in tensors.items()}
    if not choice.describe or not all(matrix is not None and described(matrix) for matrix in rows.values()):
        return dict.fromkeys(("q_tiles", "k_tiles", "v_tiles", "square_tiles"))
    wide = {"q": tensors["q"].shape[-1], "k": tensors["k"].shape[-1], "v": block_v, "square": choice.chunk}
    return {f"{name}_tiles": descriptor(matrix, choice.chunk, wide[name]) for name, matrix in rows.items()}


def _rows(tensor: torch.Tensor) -> torch.Tensor | None:
    """``tensor`` [rows, heads, size] as a matrix with a row for each of its rows; None where heads lie apart."""
    rows, heads, size = tensor.shape
    if not tensor.numel() or tensor.stride(1) != size or rows >= 2**31:
        return None
    return tensor.as_strided((rows, heads * size), (tensor.stride(0), 1))


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
            BLOCK=choice.block,
            NORMALIZE=normalize,
            PRECISION=choice.precision,
            num_warps=choice.prepare_warps,
            **({} if choice.registers is None else {"maxnreg": choice.registers}),
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
            **_described(choice, block_v, {"q": q, "k": k, "v": v, "square": squares.view(-1, 1, choice.chunk)}),
            **heads,
            K=depth,
            V=width,
            CHUNK=choice.chunk,
            BLOCK_V=block_v,
            PARTS=parts,
            STAGES=choice.stages,
            FAR=max(tensor.stride(0) for tensor in (q, k, v, out)) * choice.chunk >= 2**31,
            num_warps=choice.warps,
            num_stages=choice.stages,
        )
    return out
