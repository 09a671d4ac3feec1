"""The gated delta rule over whole sequences, a chunk of tokens at a time: prefill."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.delta_net.arguments import EPSILON, check_contiguous, check_heads, check_numbers
from kernels_smoke.launch import DTYPES_16, architecture, check_rows, check_written, on_device_of, require

_FORGOTTEN = tl.constexpr(-104.0)  # exp of it, and of anything less, is 0 in float32


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
def _bounds(cu_seqlens, sequence, tokens):
    """The first token of ``sequence``, and the first one behind it."""
    if cu_seqlens is None:
        begin = (sequence * 0).to(tl.int64)
        end = begin + tokens
    else:
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)
        end = tl.load(cu_seqlens + sequence + 1).to(tl.int64)
    return begin, end


@triton.jit
def _first_slot(begin, sequence, CHUNK: tl.constexpr):
    """Where the chunks of a sequence begin in the workspace. No two sequences overlap: see README.md."""
    return begin // CHUNK + sequence


@triton.jit
def _sequence_of(slot, cu_seqlens, sequences, CHUNK: tl.constexpr):
    """The last sequence whose first slot is not behind ``slot``, by bisection."""
    low = slot * 0
    high = low + sequences
    while high - low > 1:
        middle = (low + high) // 2
        before = _first_slot(tl.load(cu_seqlens + middle).to(tl.int64), middle, CHUNK) <= slot
        low = tl.where(before, middle, low)
        high = tl.where(before, high, middle)
    return low


@triton.jit
def _invert(lower, CHUNK: tl.constexpr, PRECISION: tl.constexpr):
    """The inverse of I + ``lower`` [CHUNK, CHUNK], which is strictly lower triangular.

    Blocks on the diagonal are inverted, and two neighbours joined to one of double the size, until one is left.
    """
    down = tl.arange(0, CHUNK)[:, None]
    across = tl.arange(0, CHUNK)[None, :]
    inverse = tl.where(down == across, 1.0, 0.0) - tl.where(down // 2 == across // 2, lower, 0.0)
    for level in tl.static_range(1, 6):
        if 1 << level < CHUNK:
            beside = (down >> level != across >> level) & (down >> (level + 1) == across >> (level + 1))
            joint = tl.dot(inverse, tl.where(beside, lower, 0.0), input_precision=PRECISION)
            inverse -= tl.dot(joint, inverse, input_precision=PRECISION)
    return inverse


@triton.jit
def _prepare_kernel(
    q, k, log_decay, beta, cu_seqlens, squares, factors, tokens, sequences,
    q_stride, q_head_stride, k_stride, k_head_stride, log_decay_stride, beta_stride, scale, epsilon,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, DEPTH: tl.constexpr, CHUNK: tl.constexpr,
    NORMALIZE: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # All that does not depend on the state, for one chunk and one value head.
    tile = tl.program_id(0).to(tl.int64)
    slot = tile // VALUE_HEADS
    head = tile % VALUE_HEADS
    sequence = slot * 0
    if cu_seqlens is not None:
        sequence = _sequence_of(slot, cu_seqlens, sequences, CHUNK)
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    first = begin + (slot - _first_slot(begin, sequence, CHUNK)) * CHUNK
    place = tl.arange(0, CHUNK)
    row = place.to(tl.int64)
    present = row < end - first
    deep = tl.arange(0, DEPTH)[None, :]
    q += first * q_stride + head // GROUP * q_head_stride
    k += first * k_stride + head // GROUP * k_head_stride
    tile_k = tl.load(k + row[:, None] * k_stride + deep, mask=present[:, None], other=0.0)
    tile_q = tl.load(q + row[:, None] * q_stride + deep, mask=present[:, None], other=0.0)
    beta += first * beta_stride + head
    log_decay += first * log_decay_stride + head
    strength = tl.load(beta + row * beta_stride, mask=present, other=0.0).to(tl.float32)
    decay = tl.load(log_decay + row * log_decay_stride, mask=present, other=0.0).to(tl.float32)
    # Behind the last token it stays as it is. Stronger decays would leave nothing of small ones behind them in the sum.
    decay = tl.cumsum(tl.maximum(decay, _FORGOTTEN), axis=0)

    # Queries and keys stay as they are: what would divide them by their norms becomes part of the factors.
    of_q = tl.full((CHUNK,), 1.0, tl.float32) * scale
    of_k = tl.full((CHUNK,), 1.0, tl.float32)
    if NORMALIZE:
        wide_q = tile_q.to(tl.float32)
        wide_k = tile_k.to(tl.float32)
        of_q *= tl.rsqrt(tl.sum(wide_q * wide_q, axis=1) + epsilon)
        of_k *= tl.rsqrt(tl.sum(wide_k * wide_k, axis=1) + epsilon)
    whole = tl.sum(tl.where(place == CHUNK - 1, decay, 0.0), axis=0)
    line = factors + tile * 4 * CHUNK + place
    tl.store(line, tl.exp(decay) * of_k)
    tl.store(line + CHUNK, tl.exp(decay) * of_q)
    tl.store(line + 2 * CHUNK, tl.exp(whole - decay) * of_k)
    tl.store(line + 3 * CHUNK, tl.exp(decay))

    down = place[:, None]
    across = place[None, :]
    square = squares + tile * 2 * CHUNK * CHUNK + down * CHUNK + across
    # A difference of sums of logarithms is never above zero where it counts; exp of each alone would overflow.
    faded = tl.exp(tl.where(down >= across, decay[:, None] - decay[None, :], float("-inf"))) * of_k[None, :]
    weights = tl.dot(tile_q, tile_k.T) * faded * of_q[:, None]
    tl.store(square + CHUNK * CHUNK, weights.to(squares.dtype.element_ty))
    keys = tl.dot(tile_k, tile_k.T) * faded * (strength * of_k)[:, None]
    solver = _invert(tl.where(down > across, keys, 0.0), CHUNK, PRECISION) * strength[None, :]
    tl.store(square, solver.to(squares.dtype.element_ty))


@triton.jit
def _carry_kernel(
    q, k, v, cu_seqlens, squares, factors, initial_state, final_state, out, tokens,
    q_stride, q_head_stride, k_stride, k_head_stride, v_stride, v_head_stride, out_stride, out_head_stride,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, DEPTH: tl.constexpr, WIDTH: tl.constexpr, CHUNK: tl.constexpr,
    BLOCK_V: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    # One sequence, one value head, BLOCK_V columns of the state, which is transposed: [BLOCK_V, DEPTH]. So it is the
    # left operand of every product, and a tensor core of Hopper takes that from the registers in which it is.
    blocks: tl.constexpr = WIDTH // BLOCK_V
    program = tl.program_id(0).to(tl.int64)
    sequence = program // (blocks * VALUE_HEADS)
    head = program // blocks % VALUE_HEADS
    begin, end = _bounds(cu_seqlens, sequence, tokens)
    tile = _first_slot(begin, sequence, CHUNK) * VALUE_HEADS + head

    place = tl.arange(0, CHUNK)
    row = place.to(tl.int64)
    deep = tl.arange(0, DEPTH)
    columns = (program % blocks).to(tl.int32) * BLOCK_V + tl.arange(0, BLOCK_V)
    q += begin * q_stride + head // GROUP * q_head_stride
    k += begin * k_stride + head // GROUP * k_head_stride
    v += begin * v_stride + head * v_head_stride
    out += begin * out_stride + head * out_head_stride
    squares += tile * 2 * CHUNK * CHUNK
    factors += tile * 4 * CHUNK
    square = place[:, None] * CHUNK + place[None, :]
    whole_state = (sequence * VALUE_HEADS + head) * DEPTH * WIDTH
    within = columns[:, None] + deep[None, :] * WIDTH
    state = tl.zeros((BLOCK_V, DEPTH), tl.float32)
    if initial_state is not None:
        state = tl.load(initial_state + whole_state + within)
    step = tl.full((), CHUNK, tl.int64)  # strides may be beyond 2^31 / CHUNK
    for left in range(end - begin, 0, -CHUNK):
        present = row < left
        tile_k = tl.load(k + row[:, None] * k_stride + deep[None, :], mask=present[:, None], other=0.0)
        tile_q = tl.load(q + row[:, None] * q_stride + deep[None, :], mask=present[:, None], other=0.0)
        tile_v = tl.load(v + row[:, None] * v_stride + columns[None, :], mask=present[:, None], other=0.0)
        solver = tl.load(squares + square)
        weights = tl.load(squares + CHUNK * CHUNK + square)
        of_k = tl.load(factors + place)
        of_q = tl.load(factors + CHUNK + place)
        of_delta = tl.load(factors + 2 * CHUNK + place)
        of_state = tl.load(factors + 4 * CHUNK - 1)

        read = state.to(tile_k.dtype)
        predicted = tl.dot(read, tile_k.T) * of_k[None, :]
        delta = tl.dot(tile_v.T, solver.T)
        delta += tl.dot((-predicted).to(tile_k.dtype), solver.T)
        answer = tl.dot(read, tile_q.T) * of_q[None, :]
        answer += tl.dot(delta.to(tile_k.dtype), weights.T)
        state = tl.dot((delta * of_delta[None, :]).to(tile_k.dtype), tile_k, state * of_state)
        there = columns[:, None] + row[None, :] * out_stride
        tl.store(out + there, answer.to(out.dtype.element_ty), mask=present[None, :])
        q += step * q_stride
        k += step * k_stride
        v += step * v_stride
        out += step * out_stride
        squares += 2 * CHUNK * CHUNK * VALUE_HEADS
        factors += 4 * CHUNK * VALUE_HEADS
    if final_state is not None:
        tl.store(final_state + whole_state + within, state)


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
            *(q, k, log_decay, beta, cu_seqlens, squares, factors),
            *(tokens, sequences),
            *(*q.stride()[:2], *k.stride()[:2], log_decay.stride(0), beta.stride(0)),
            *(depth**-0.5 if scale is None else scale, EPSILON),
            **heads,
            DEPTH=depth,
            CHUNK=choice.chunk,
            NORMALIZE=normalize,
            PRECISION=choice.precision,
            num_warps=choice.prepare_warps,
        )
        block_v = min(choice.block_v, width)
        _carry_kernel[(sequences * value_heads * (width // block_v),)](
            *(q, k, v, cu_seqlens, squares, factors, initial_state, final_state, out),
            tokens,
            *(*q.stride()[:2], *k.stride()[:2], *v.stride()[:2], *out.stride()[:2]),
            **heads,
            DEPTH=depth,
            WIDTH=width,
            CHUNK=choice.chunk,
            BLOCK_V=block_v,
            num_warps=choice.warps,
            num_stages=choice.stages,
        )
    return out
