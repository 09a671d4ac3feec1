"""What the cases of both rotary kernels share: the rotary cache, the positions, mutants of the code that they share."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Case, Mutant

EPSILON = 1e-5  # not the default, so that it shows whether it is passed on
BASE = 10_000.0  # of the rotary embedding's frequencies
FAR = 2**30 + 64  # elements from one token to the next, so that the third token lies beyond 2^31
FP16, FP32, BF16 = torch.float16, torch.float32, torch.bfloat16
HEADS_MODULE = "kernels_smoke.rotary.heads"


def draw_rotary(
    draw: Draw,
    *,
    tokens: int,
    head_dim: int,
    rotary_dim: int,
    dtype: torch.dtype,
    float32_parameters: bool = False,
    cache_stride: int = 0,
    positions: int = 4096,
) -> dict[str, torch.Tensor]:
    """Draw the weights [head_dim], the cache of angles [positions, rotary_dim], and the tokens' positions [tokens]."""
    parameters = FP32 if float32_parameters else dtype
    frequencies = BASE ** -(torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim)
    angles = torch.arange(positions, dtype=torch.float64)[:, None] * frequencies
    cos_sin = torch.cat((angles.cos(), angles.sin()), dim=1).to(parameters)
    drawn = {
        "q_weight": draw.normal(head_dim, dtype=parameters, scale=0.3, name="q_weight"),
        "k_weight": draw.normal(head_dim, dtype=parameters, scale=0.3, name="k_weight"),
        "cos_sin": draw.place(cos_sin, row_stride=cache_stride, name="cos_sin"),
        "positions": draw.integers(tokens, low=0, high=positions, dtype=torch.int64, name="positions"),
    }
    if tokens and drawn["positions"].device.type != "meta":
        drawn["positions"][0] = positions - 1
    return drawn


def sizes(query_heads: int, key_heads: int, head_dim: int, rotary_dim: int) -> dict[str, Any]:
    """The shape of the heads, as both ``draw_inputs`` take it."""
    return {"heads": (query_heads, key_heads), "head_dim": head_dim, "rotary_dim": rotary_dim}


QWEN = sizes(16, 4, 256, 64)  # heads of Qwen 3.5's full attention


def case(name: str, level: Any = "full", where: Any = ("cuda",), **shape: Any) -> Case:
    """A case, without the noise."""
    return Case(name, shape, level=level, where=where)


def here(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for every device, which needs float32 or float16 and small tensors."""
    return case(name, level, EVERYWHERE, **shape)


def shared(name: str, old: str, new: str) -> Mutant:
    """A fault in what both kernels share."""
    return Mutant(name, old, new, module=HEADS_MODULE)


SHARED_MUTANTS = (
    shared(
        "the part that is not rotated loaded without a mask",
        "rest = tl.load(source + rest_columns, mask=present & in_head,",
        "rest = tl.load(source + rest_columns, mask=present,",
    ),
    shared(
        "the part that is not rotated left out of the norm",
        "squares += tl.sum(rest * rest",
        "squares += 0 * tl.sum(rest",
    ),
    shared("mean over the rotated part", "squares / HEAD_DIM", "squares / ROTARY_DIM"),
    shared("no epsilon", "/ HEAD_DIM + epsilon", "/ HEAD_DIM"),
    shared("epsilon of another size", "/ HEAD_DIM + epsilon", "/ HEAD_DIM + 1e-6"),
    shared("epsilon in the sum instead of the mean", "squares / HEAD_DIM + epsilon", "(squares + epsilon) / HEAD_DIM"),
    shared("weights not zero-centred", "scale += 1.0", "scale += 0.0"),
    shared(
        "weights of the wrong half", "_scaled(second, inverse, second_weight", "_scaled(second, inverse, first_weight"
    ),
    shared(
        "the norm not rounded before the rotation",
        "return (values * inverse * scale).to(dtype)",
        "return values * inverse * scale",
    ),
    shared("rotated the other way", "first * cosine - second * sine", "first * cosine + second * sine"),
    shared("sines from the place of the cosines", "angles + ROTARY_DIM // 2 + pairs", "angles + pairs"),
)
