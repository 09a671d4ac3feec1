"""What the cases of prefill and decode share: how heads and gates are drawn."""

from collections.abc import Mapping
from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Case, Mutant, Strides, here

FAINT = 0.25  # of a usual row: a query may be nearly orthogonal to all that a state holds
# Of 2 and 4 heads of 32, for each tensor others. They grow, so that who takes those of an earlier one stays within.
STRIDES: Mapping[str, tuple[int, ...]] = {
    **{name: (300 + 24 * number, 40 + 8 * number, 1) for number, name in enumerate(("q", "k", "v", "out"))},
    "log_decay": (7, 1),
    "beta": (9, 1),
}
ARGUMENTS = ("q", "k", "v", "log_decay", "beta", "normalize", "scale")  # of both functions
TINY = {"depth": 32, "width": 32}
FAR = 2**30 + 64  # elements from one row to the next, so that the third row is beyond 2^31


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too: float16 unless ``shape`` says otherwise, and few small heads."""
    return here(name, level, **{"dtype": FP16, **shape})


def draw_heads(
    draw: Draw,
    tokens: int,
    heads: tuple[int, int],
    *,
    depth: int,
    width: int,
    dtype: torch.dtype = BF16,
    normalize: bool = True,
    packed: bool = False,
    row_stride: int = 0,
    scale: float = 1.0,
    common: float = 0.0,
    forgetting: float = 0.2,
    most_beta: float = 1.0,
    gate_dtype: torch.dtype | None = None,
    gate_stride: int = 0,
    query_scale: float | None = None,
    key_scale: float | None = None,
    extremes: bool = False,
    strides: Mapping[str, tuple[int, ...]] = {},
) -> dict[str, Any]:
    """Draw q, k, v, log_decay and beta.

    ``heads``: key and value heads. ``packed``: q, k and v are slices of the rows of one tensor, as a projection makes
    them. ``row_stride``: elements from one head to the next. ``scale``: of the values; and of queries and keys when
    they are normalized, otherwise their norms are near 1, because longer keys let the state grow without end.
    ``common``: how much of one common vector each query and key has, next to its own; 1 makes them half alike.
    ``forgetting``: the greatest decay, as a negative logarithm. ``most_beta``: the greatest beta.
    ``gate_stride``: elements from one token's gates to those of the next. ``query_scale``: the argument ``scale``.
    ``key_scale``: of queries and keys.
    ``extremes``: some tokens forget all, with decays of -1e9 and minus infinity, and one has neither key nor query.
    ``strides``: of tensors by name.
    """
    key_heads, value_heads = heads

    def apart(name: str) -> Strides:
        return strides.get(name, row_stride)

    of_keys = key_scale or (scale if normalize else depth**-0.5)
    if packed:
        sizes = (key_heads * depth, key_heads * depth, value_heads * width)
        rows = draw.normal(tokens, sum(sizes), dtype=dtype, scale=scale, name="q, k and v")
        q, k, v = (
            part.unflatten(1, (count, -1))
            for part, count in zip(rows.split(sizes, dim=1), (key_heads, key_heads, value_heads), strict=True)
        )
    else:
        q, k = (
            draw.normal(tokens, key_heads, depth, dtype=dtype, scale=of_keys, row_stride=apart(name), name=name)
            for name in ("q", "k")
        )
        v = draw.normal(tokens, value_heads, width, dtype=dtype, scale=scale, row_stride=apart("v"), name="v")
    if common and draw.device != "meta":
        direction = torch.randn(depth, generator=draw.generator, device=draw.device) * (common * of_keys)
        q += direction.to(dtype)
        k += direction.to(dtype)
    log_decay, beta = (
        draw.uniform(
            tokens,
            value_heads,
            low=low,
            high=high,
            dtype=gate_dtype or FP32,
            row_stride=strides.get(name, gate_stride),
            name=name,
        )
        for name, low, high in (("log_decay", -forgetting, 0.0), ("beta", 0.0, most_beta))
    )
    if extremes and draw.device != "meta":
        log_decay[3::17] = -1e9
        log_decay[5::19] = float("-inf")
        q[tokens // 2], k[tokens // 2] = 0, 0
    return {
        "q": q,
        "k": k,
        "v": v,
        "log_decay": log_decay,
        "beta": beta,
        "normalize": normalize,
        "scale": depth**-0.5 if query_scale is None else query_scale,
    }


COMMON_MUTANTS = (
    Mutant("always the usual scale", "depth**-0.5 if scale is None else scale", "depth**-0.5"),
    Mutant("another epsilon", "epsilon=EPSILON", "epsilon=1e-5"),
    Mutant("beta at the distance of decays", "beta.stride(0)", "log_decay.stride(0)"),
)


def draw_state_rows(
    draw: Draw, rows: int, requests: int, steps: int, *, index_dtype: torch.dtype, in_place: bool, missing: bool
) -> dict[str, torch.Tensor]:
    """Draw which of ``rows`` states each request begins with [requests], and which each token leaves [requests, steps].

    ``in_place``: the state behind the first token replaces the one before it. ``missing``: the first request begins
    with zeros, and the last state is not kept.
    """
    order = draw.permutation(rows, dtype=index_dtype, name="order")
    state_in = draw.empty(requests, dtype=index_dtype, name="state_indices_in")
    state_out = draw.empty(requests, steps, dtype=index_dtype, name="state_indices_out")
    if draw.device != "meta":
        state_in.copy_(order[:requests])
        state_out[:, in_place:] = order[requests:][: requests * (steps - in_place)].reshape(requests, steps - in_place)
        if in_place:
            state_out[:, 0] = state_in
        if missing:
            state_in[0], state_out[-1, -1] = -1, -1
    return {"state_indices_in": state_in, "state_indices_out": state_out}
