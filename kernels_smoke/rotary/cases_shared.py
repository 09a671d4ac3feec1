"""What the cases of both rotary kernels share: the rotary cache, the positions, mutants of the code that they share."""

from typing import Any

import torch

from kernels_smoke.suite.correctness.draw import FP16, FP32, Draw
from kernels_smoke.suite.model import Mutant, big, case, here

EPSILON = 1e-5  # not the default, so that it shows whether it is passed on
BASE = 10_000.0  # of the rotary embedding's frequencies
FAR = 2**30 + 64  # elements from one token to the next, so that the third token is beyond 2^31
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
WIDE = sizes(40, 20, 64, 32)  # more heads than are timed


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
        "the part that is not rotated omitted from the norm",
        "squares += tl.sum(rest * rest",
        "squares += 0 * tl.sum(rest",
    ),
    shared("mean over the rotated part", "squares / HEAD_DIM", "squares / ROTARY_DIM"),
    shared("no epsilon", "/ HEAD_DIM + epsilon", "/ HEAD_DIM"),
    shared("epsilon of another size", "/ HEAD_DIM + epsilon", "/ HEAD_DIM + 1e-6"),
    shared("epsilon in the sum instead of the mean", "squares / HEAD_DIM + epsilon", "(squares + epsilon) / HEAD_DIM"),
    shared("weights not zero-centred", "scale += 1.0", "scale += 0.0"),
    shared("weights of the wrong half", "_scaled(x2, rstd, weight2", "_scaled(x2, rstd, weight1"),
    shared(
        "the norm not rounded before the rotation",
        "return (values * rstd * scale).to(dtype)",
        "return values * rstd * scale",
    ),
    shared("rotated the other way", "x1 * cos - x2 * sin", "x1 * cos + x2 * sin"),
    shared("sines from the place of the cosines", "angles + ROTARY_DIM // 2 + pairs", "angles + pairs"),
    Mutant(
        "a token's number taken for its position",
        "cos_sin_pointer + position * cos_sin_stride",
        "cos_sin_pointer + token * cos_sin_stride",
    ),
    Mutant("angles taken for dense", "position * cos_sin_stride", "position * ROTARY_DIM"),
    Mutant(
        "the last program of queries omitted", "tl.cdiv(tokens * QUERY_HEADS, HEADS)", "tokens * QUERY_HEADS // HEADS"
    ),
    Mutant(
        "offsets in 32 bits",
        "index // QUERY_HEADS).to(tl.int64)",
        "index // QUERY_HEADS)",
        where=("cuda",),
        why="it takes tokens beyond 2^31 elements, gigabytes for a slow interpreter",
    ),
)
COMMON_CASES = (
    case("all rotated", tokens=33, **sizes(8, 2, 128, 128)),
    case("head of 300", tokens=7, **sizes(2, 1, 300, 150)),
    case("head of 1024", tokens=7, **sizes(2, 1, 1024, 64)),
    case("no token", tokens=0, **QWEN),
    big("33,001 tokens of 40 and 20 heads, positions up to 140,000", tokens=33_001, **WIDE, positions=140_001),
    case("one token", tokens=1, **QWEN),
    case("values of 1e4", tokens=7, **QWEN, scale=1e4),
    case("values of 1e17, whose squares float32 just holds", tokens=7, **QWEN, largest=1e17),
    case("parameters in float32", tokens=33, **QWEN, float32_parameters=True),
    here("fp32, values of 1e4", tokens=3, **sizes(2, 1, 128, 64), dtype=FP32, scale=1e4),
    here("fp32, squares near epsilon", tokens=3, **sizes(2, 1, 128, 64), dtype=FP32, scale=3e-3),
    here("fp16, values near 65504", tokens=3, **sizes(2, 1, 128, 64), dtype=FP16, largest=65000.0),
    here("fp16, parameters in float32", tokens=3, **sizes(2, 1, 64, 32), dtype=FP16, float32_parameters=True),
    here("fp16, no token", tokens=0, **sizes(2, 1, 64, 32), dtype=FP16),
)
TIMED = {"tokens": 8192, **QWEN, "positions": 8192}
