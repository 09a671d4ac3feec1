"""What the kernels of this family share: norm and rotary embedding of some heads, the launch's layout, the checks."""

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
    all_heads = tokens * (query_heads + key_heads)
    require(all_heads < 2**31, f"{tokens} tokens have {all_heads} heads of queries and keys; the limit is 2^31 - 1")
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
        # [heads, 2 * HALF_BLOCK]
        row = tl.load(pointers + columns, mask=mask & (columns < ROTARY_DIM), other=0.0, eviction_policy=EVICTION)
        x1, x2 = tl.split(tl.reshape(row, [row.shape[0], HALF_BLOCK, 2]))
    else:
        columns = tl.arange(0, HALF_BLOCK)[None, :]
        mask = mask & (columns < ROTARY_DIM // 2)
        x1 = tl.load(pointers + columns, mask=mask, other=0.0, eviction_policy=EVICTION)  # [heads, HALF_BLOCK]
        # [heads, HALF_BLOCK]
        x2 = tl.load(pointers + ROTARY_DIM // 2 + columns, mask=mask, other=0.0, eviction_policy=EVICTION)
    return x1.to(tl.float32), x2.to(tl.float32)


@triton.jit
def _store_pairs(pointers, x1, x2, mask, ROTARY_DIM: tl.constexpr, HALF_BLOCK: tl.constexpr, INTERLEAVED: tl.constexpr):
    """The inverse of ``_pairs``."""
    dtype = pointers.dtype.element_ty
    if INTERLEAVED:
        columns = tl.arange(0, 2 * HALF_BLOCK)[None, :]
        row = tl.reshape(tl.join(x1.to(dtype), x2.to(dtype)), [x1.shape[0], 2 * HALF_BLOCK])
        tl.store(pointers + columns, row, mask=mask & (columns < ROTARY_DIM))
    else:
        columns = tl.arange(0, HALF_BLOCK)[None, :]
        mask = mask & (columns < ROTARY_DIM // 2)
        tl.store(pointers + columns, x1.to(dtype), mask=mask)
        tl.store(pointers + ROTARY_DIM // 2 + columns, x2.to(dtype), mask=mask)


@triton.jit
def _scaled(values, rstd, weight, dtype: tl.constexpr, ZERO_CENTRED: tl.constexpr):
    """The norm, rounded as if it were stored: the model was trained with the norm as its own operation."""
    scale = weight.to(tl.float32)
    if ZERO_CENTRED:
        scale += 1.0
    return (values * rstd * scale).to(dtype)


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
    x1, x2 = _pairs(source, present, ROTARY_DIM, HALF_BLOCK, INTERLEAVED, EVICTION)  # [heads, HALF_BLOCK] each
    if REST_BLOCK:  # what is normed and not rotated
        rest_columns = ROTARY_DIM + tl.arange(0, REST_BLOCK)[None, :]
        in_head = rest_columns < HEAD_DIM
        # [heads, REST_BLOCK]
        rest = tl.load(source + rest_columns, mask=present & in_head, other=0.0, eviction_policy=EVICTION)
        rest_weight = tl.load(weight + rest_columns, mask=in_head, other=0.0)  # [1, REST_BLOCK]
    weight1, weight2 = _pairs(weight, True, ROTARY_DIM, HALF_BLOCK, INTERLEAVED, "")  # [1, HALF_BLOCK] each
    pairs = tl.arange(0, HALF_BLOCK)[None, :]
    # [heads, HALF_BLOCK]
    cos = tl.load(angles + pairs, mask=present & (pairs < ROTARY_DIM // 2), other=0.0).to(tl.float32)
    # [heads, HALF_BLOCK]
    sin = tl.load(angles + ROTARY_DIM // 2 + pairs, mask=present & (pairs < ROTARY_DIM // 2), other=0.0).to(tl.float32)

    squares = tl.sum(x1 * x1 + x2 * x2, axis=1, keep_dims=True)  # [heads, 1]
    if REST_BLOCK:
        rest = rest.to(tl.float32)
        squares += tl.sum(rest * rest, axis=1, keep_dims=True)
    rstd = tl.rsqrt(squares / HEAD_DIM + epsilon)  # [heads, 1]
    x1 = _scaled(x1, rstd, weight1, dtype, ZERO_CENTRED).to(tl.float32)
    x2 = _scaled(x2, rstd, weight2, dtype, ZERO_CENTRED).to(tl.float32)

    tl.debug_barrier()  # in place: no one stores before everybody has loaded, for a small tile is loaded several times
    o1 = x1 * cos - x2 * sin
    o2 = x2 * cos + x1 * sin
    _store_pairs(target, o1, o2, present, ROTARY_DIM, HALF_BLOCK, INTERLEAVED)
    if REST_BLOCK:
        tl.store(target + rest_columns, _scaled(rest, rstd, rest_weight, dtype, ZERO_CENTRED), mask=present & in_head)
