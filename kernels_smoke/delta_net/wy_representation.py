"""What the chunks need and no state decides: T and A of README.md, the WY representation of each, and the factors."""

from __future__ import annotations

import triton
import triton.language as tl

_FORGOTTEN = tl.constexpr(-104.0)  # exp of it, and of anything less, is 0 in float32


@triton.jit
def _bounds(cu_seqlens, sequence, tokens):
    """The first token of ``sequence``, and the first one behind it."""
    if cu_seqlens is None:
        begin = (sequence * 0).to(tl.int64)
        end = begin + tokens
    else:
        begin = tl.load(cu_seqlens + sequence).to(tl.int64)  # [1]
        end = tl.load(cu_seqlens + sequence + 1).to(tl.int64)  # [1]
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
        before = _first_slot(tl.load(cu_seqlens + middle).to(tl.int64), middle, CHUNK) <= slot  # [1]
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
            neighbours = (down >> level != across >> level) & (down >> (level + 1) == across >> (level + 1))
            joint = tl.dot(inverse, tl.where(neighbours, lower, 0.0), input_precision=PRECISION)  # [CHUNK, CHUNK]
            inverse -= tl.dot(joint, inverse, input_precision=PRECISION)  # [CHUNK, CHUNK]
    return inverse


@triton.jit
def _prepare_kernel(
    q, k, log_decay, beta, cu_seqlens, squares, factors, tokens, sequences,
    q_stride, q_head_stride, k_stride, k_head_stride, log_decay_stride, beta_stride, scale, epsilon,
    VALUE_HEADS: tl.constexpr, GROUP: tl.constexpr, K: tl.constexpr, CHUNK: tl.constexpr,
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
    o_t = tl.arange(0, CHUNK)
    row = o_t.to(tl.int64)
    present = row < end - first
    o_k = tl.arange(0, K)[None, :]
    q += first * q_stride + head // GROUP * q_head_stride
    k += first * k_stride + head // GROUP * k_head_stride
    b_k = tl.load(k + row[:, None] * k_stride + o_k, mask=present[:, None], other=0.0)  # [CHUNK, K]
    b_q = tl.load(q + row[:, None] * q_stride + o_k, mask=present[:, None], other=0.0)  # [CHUNK, K]
    beta += first * beta_stride + head
    log_decay += first * log_decay_stride + head
    b_beta = tl.load(beta + row * beta_stride, mask=present, other=0.0).to(tl.float32)  # [CHUNK]
    b_g = tl.load(log_decay + row * log_decay_stride, mask=present, other=0.0).to(tl.float32)  # [CHUNK]
    # Behind the last token it stays as it is. Stronger decays would leave nothing of small ones behind them in the sum.
    b_g = tl.cumsum(tl.maximum(b_g, _FORGOTTEN), axis=0)  # [CHUNK], G

    # Queries and keys stay as they are: what would divide them by their norms becomes part of the factors.
    q_factor = tl.full((CHUNK,), 1.0, tl.float32) * scale
    k_factor = tl.full((CHUNK,), 1.0, tl.float32)
    if NORMALIZE:
        q_fp32 = b_q.to(tl.float32)
        k_fp32 = b_k.to(tl.float32)
        q_factor *= tl.rsqrt(tl.sum(q_fp32 * q_fp32, axis=1) + epsilon)
        k_factor *= tl.rsqrt(tl.sum(k_fp32 * k_fp32, axis=1) + epsilon)
    g_last = tl.sum(tl.where(o_t == CHUNK - 1, b_g, 0.0), axis=0)
    line = factors + tile * 4 * CHUNK + o_t
    tl.store(line, tl.exp(b_g) * k_factor)  # [CHUNK]
    tl.store(line + CHUNK, tl.exp(b_g) * q_factor)  # [CHUNK]
    tl.store(line + 2 * CHUNK, tl.exp(g_last - b_g) * k_factor)  # [CHUNK]
    tl.store(line + 3 * CHUNK, tl.exp(b_g))  # [CHUNK]

    down = o_t[:, None]
    across = o_t[None, :]
    o_square = squares + tile * 2 * CHUNK * CHUNK + down * CHUNK + across
    # A difference of sums of logarithms is never above zero where it counts; exp of each alone would overflow.
    gamma = tl.exp(tl.where(down >= across, b_g[:, None] - b_g[None, :], float("-inf"))) * k_factor[None, :]
    b_a = tl.dot(b_q, b_k.T) * gamma * q_factor[:, None]  # [CHUNK, CHUNK], A
    tl.store(o_square + CHUNK * CHUNK, b_a.to(squares.dtype.element_ty))
    b_n = tl.dot(b_k, b_k.T) * gamma * (b_beta * k_factor)[:, None]  # [CHUNK, CHUNK], N
    b_t = _invert(tl.where(down > across, b_n, 0.0), CHUNK, PRECISION) * b_beta[None, :]  # [CHUNK, CHUNK], T
    tl.store(o_square, b_t.to(squares.dtype.element_ty))
