"""What the kernels of this family share: norm and rotary embedding of some heads, the launch's layout, the checks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import check_rows, require

WIDEST = 1024  # elements of a head


@dataclass(frozen=True)
class Configuration:
    """How one launch is laid out: each program takes ``heads`` heads (a power of two) with ``warps`` warps.

    ``eviction`` is the cache's hint for the heads, which are read once.
    """

    heads: int
    warps: int
    eviction: str = ""


@dataclass(frozen=True)
class Blocks:
    """Widths of a head's parts as powers of two: a half of what is rotated, and what is not (0: all is rotated)."""

    half: int
    rest: int


def blocks(head_dim: int, rotary_dim: int) -> Blocks:
    """The parts of a head of ``head_dim`` elements of which the first ``rotary_dim`` are rotated."""
    rest = head_dim - rotary_dim
    return Blocks(half=triton.next_power_of_2(rotary_dim // 2), rest=triton.next_power_of_2(rest) if rest else 0)


def check_norm_and_rope(
    like: torch.Tensor,
    q_weight: torch.Tensor,
    k_weight: torch.Tensor,
    cos_sin: torch.Tensor,
    positions: torch.Tensor,
    query_heads: int,
    key_heads: int,
) -> tuple[int, int, int]:
    """Return (tokens, head_dim, rotary_dim).

    Raises ValueError unless these arguments fit each other, and the tokens, dtype and device of ``like``.
    """
    tokens, head_dim = len(like), q_weight.numel()
    require(0 < head_dim <= WIDEST, f"heads have {head_dim} elements; 1 to {WIDEST} are possible")
    require(cos_sin.ndim == 2, f"cos_sin must be [positions, rotary_dim], not {cos_sin.ndim}-dimensional")
    rotary_dim = cos_sin.shape[1]
    require(
        2 <= rotary_dim <= head_dim and rotary_dim % 2 == 0,
        f"{rotary_dim} elements of a head cannot be rotated: it must be an even number from 2 to {head_dim}",
    )
    require(query_heads > 0 < key_heads, f"{query_heads} query and {key_heads} key heads: there must be some of both")
    require(tokens * (query_heads + key_heads) < 2**31, f"{tokens} tokens have 2^31 heads or more: that is too many")
    check_rows("q_weight", q_weight, (head_dim,), (like.dtype, torch.float32), like)
    check_rows("k_weight", k_weight, (head_dim,), (q_weight.dtype,), like)
    check_rows("cos_sin", cos_sin, tuple(cos_sin.shape), (like.dtype, torch.float32), like)
    check_rows("positions", positions, (tokens,), (torch.int64,), like)
    return tokens, head_dim, rotary_dim


@triton.jit
def _pairs(
    pointers, mask,
    ROTARY_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, INTERLEAVED: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """The two elements of each pair, in float32: two tensors [heads, HALF_BLOCK] from pointers [heads, 1]."""
    if INTERLEAVED:
        columns = tl.arange(0, 2 * HALF_BLOCK)[None, :]
        row = tl.load(pointers + columns, mask=mask & (columns < ROTARY_DIM), other=0.0, eviction_policy=EVICTION)
        first, second = tl.split(tl.reshape(row, [row.shape[0], HALF_BLOCK, 2]))
    else:
        columns = tl.arange(0, HALF_BLOCK)[None, :]
        mask = mask & (columns < ROTARY_DIM // 2)
        first = tl.load(pointers + columns, mask=mask, other=0.0, eviction_policy=EVICTION)
        second = tl.load(pointers + ROTARY_DIM // 2 + columns, mask=mask, other=0.0, eviction_policy=EVICTION)
    return first.to(tl.float32), second.to(tl.float32)


@triton.jit
def _store_pairs(
    pointers, first, second, mask, ROTARY_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, INTERLEAVED: tl.constexpr
):
    """The inverse of ``_pairs``."""
    dtype = pointers.dtype.element_ty
    if INTERLEAVED:
        columns = tl.arange(0, 2 * HALF_BLOCK)[None, :]
        row = tl.reshape(tl.join(first.to(dtype), second.to(dtype)), [first.shape[0], 2 * HALF_BLOCK])
        tl.store(pointers + columns, row, mask=mask & (columns < ROTARY_DIM))
    else:
        columns = tl.arange(0, HALF_BLOCK)[None, :]
        mask = mask & (columns < ROTARY_DIM // 2)
        tl.store(pointers + columns, first.to(dtype), mask=mask)
        tl.store(pointers + ROTARY_DIM // 2 + columns, second.to(dtype), mask=mask)


@triton.jit
def _scaled(values, inverse, weight, dtype: tl.constexpr, ZERO_CENTRED: tl.constexpr):
    """The norm, rounded as if it were stored: the model was trained with the norm as its own operation."""
    scale = weight.to(tl.float32)
    if ZERO_CENTRED:
        scale += 1.0
    return (values * inverse * scale).to(dtype)


@triton.jit
def _norm_and_rotate(
    source, target, present, weight, angles, epsilon,
    HEAD_DIM: tl.constexpr, ROTARY_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, REST_BLOCK: tl.constexpr,
    INTERLEAVED: tl.constexpr, ZERO_CENTRED: tl.constexpr, EVICTION: tl.constexpr,
):  # fmt: skip  # rows of tensors and sizes, strides, constants
    """Norm and rotate the heads to whose first elements ``source`` points, into ``target``, which may be the same.

    ``source``, ``target``, ``present`` (whether there is such a head) and ``angles`` (the cosines, then the sines, of
    its token's position) are [heads, 1]; ``weight`` is a pointer to the weights of one head.
    """
    dtype: tl.constexpr = target.dtype.element_ty
    first, second = _pairs(source, present, ROTARY_DIM, HALF_BLOCK, INTERLEAVED, EVICTION)
    if REST_BLOCK:  # what is normed and not rotated
        rest_columns = ROTARY_DIM + tl.arange(0, REST_BLOCK)[None, :]
        in_head = rest_columns < HEAD_DIM
        rest = tl.load(source + rest_columns, mask=present & in_head, other=0.0, eviction_policy=EVICTION)
        rest_weight = tl.load(weight + rest_columns, mask=in_head, other=0.0)
    first_weight, second_weight = _pairs(weight, True, ROTARY_DIM, HALF_BLOCK, INTERLEAVED, "")
    pairs = tl.arange(0, HALF_BLOCK)[None, :]
    cosine = tl.load(angles + pairs, mask=present & (pairs < ROTARY_DIM // 2), other=0.0).to(tl.float32)
    sine = tl.load(angles + ROTARY_DIM // 2 + pairs, mask=present & (pairs < ROTARY_DIM // 2), other=0.0).to(tl.float32)

    squares = tl.sum(first * first + second * second, axis=1, keep_dims=True)
    if REST_BLOCK:
        rest = rest.to(tl.float32)
        squares += tl.sum(rest * rest, axis=1, keep_dims=True)
    inverse = tl.rsqrt(squares / HEAD_DIM + epsilon)
    first = _scaled(first, inverse, first_weight, dtype, ZERO_CENTRED).to(tl.float32)
    second = _scaled(second, inverse, second_weight, dtype, ZERO_CENTRED).to(tl.float32)

    tl.debug_barrier()  # in place: no one stores before everybody has loaded, for a small tile is loaded several times
    rotated_first = first * cosine - second * sine
    rotated_second = second * cosine + first * sine
    _store_pairs(target, rotated_first, rotated_second, present, ROTARY_DIM, HALF_BLOCK, INTERLEAVED)
    if REST_BLOCK:
        tl.store(
            target + rest_columns, _scaled(rest, inverse, rest_weight, dtype, ZERO_CENTRED), mask=present & in_head
        )
