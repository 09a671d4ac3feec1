"""The timed shapes: the suite's, and those of Helion's comparison with torch.compile.

Helion in vLLM, table 2 (the seeds' first document): geometric means of the speedup against torch.compile on an H100,
over the Qwen3 models of its table 1 and numbers of tokens up to 8192.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from kernels_smoke.suite.model import LEVELS, Case, Kernel, Speed

TOKENS = (1, 16, 256, 2048, 8192)
HEAD = 128  # elements of a head, of all Qwen3 models


@dataclass(frozen=True)
class Model:
    """A Qwen3 model: its hidden and intermediate size, and how many query and key heads it has."""

    name: str
    hidden: int
    intermediate: int
    heads: tuple[int, int]


MODELS = (
    Model("Qwen3-1.7B", 2048, 6144, (16, 8)),
    Model("Qwen3-8B", 4096, 12288, (32, 8)),
    Model("Qwen3-32B", 5120, 25600, (64, 8)),
)


@dataclass(frozen=True)
class HelionRow:
    """A row of Helion's table: its speedup on an H100, and our shape for a model and a number of tokens."""

    speedup: float
    shape: Callable[[Model, int], dict[str, Any]]


def _hidden(model: Model, tokens: int) -> dict[str, Any]:
    return {"rows": tokens, "width": model.hidden}


def _intermediate(model: Model, tokens: int) -> dict[str, Any]:
    return {"rows": tokens, "width": model.intermediate}


def _heads(model: Model, tokens: int) -> dict[str, Any]:
    return {"tokens": tokens, "heads": model.heads, "head_dim": HEAD, "rotary_dim": HEAD}


HELION = {
    "dynamic_per_token_scaled_fp8_quant": HelionRow(1.237, _hidden),
    "rms_norm_dynamic_per_token_quant": HelionRow(1.180, _hidden),
    "silu_and_mul_dynamic_per_token_quant": HelionRow(1.256, _intermediate),
    "fused_qk_norm_rope": HelionRow(1.383, _heads),
    "per_token_group_fp8_quant": HelionRow(1.423, _hidden),
    "rms_norm_per_block_quant": HelionRow(1.674, _hidden),
    "silu_and_mul_per_block_quant": HelionRow(1.731, _intermediate),
}


def speeds_of(kernel: Kernel, *, tiny: bool) -> tuple[Speed, ...]:
    """The suite's speeds of ``kernel``; ``tiny``: one instead, of a shape that the interpreter can do."""
    if not tiny or not kernel.speeds:
        return kernel.speeds
    fitting = [case for case in kernel.cases if "interpret" in case.where and _has_elements(case)]
    small = min(fitting, key=lambda case: LEVELS.index(case.level))
    return (replace(kernel.speeds[0], name=f"{small.name} (tiny)", shape=small.shape, peer=None),)


# Further shapes: calls that take longer to launch than to run, decoding, one layer's weights, and shapes of goals
# (goals.toml).
SMALL: dict[str, dict[str, dict[str, Any]]] = {
    "fused_add_rms_norm": {"1 x 4096": {"rows": 1, "width": 4096}},
    "scaled_mm": {
        "128 x 7168, K 2048": {"m": 128, "n": 7168, "k": 2048},
        "1 x 4096, K 4096": {"m": 1, "n": 4096, "k": 4096},
    },
    "scaled_mm_blockwise": {"512 x 7168, K 2048": {"m": 512, "n": 7168, "k": 2048}},
    "newton_schulz": {"2048 x 2048": {"shape": (2048, 2048)}, "1024 x 4096": {"shape": (1024, 4096)}},
    "paged_attention": {
        "prompt of 16384, pages of 64, cuDNN": {
            "batch": ((16384, 16384),),
            "longest": True,
            "spare": 0,
            "dense": True,
            "page_size": 64,
        },
    },
}


def small_speeds(kernel: Kernel) -> tuple[Speed, ...]:
    """The small shapes in which calls of ``kernel`` are timed as a program makes them, with the peer of its speeds."""
    return tuple(
        replace(kernel.speeds[0], name=name, shape=shape) for name, shape in SMALL.get(kernel.name, {}).items()
    )


def _has_elements(case: Case) -> bool:
    return all(value for value in case.shape.values() if type(value) is int)  # a bool is not an extent


def helion_speeds(kernel: Kernel, *, tiny: bool) -> tuple[Speed, ...]:
    """The shapes of Helion's table for ``kernel``, or the tiny one; none if Helion's table has no such kernel."""
    row = HELION.get(kernel.name)
    if row is None or tiny:
        return speeds_of(kernel, tiny=True) if row else ()
    return tuple(
        replace(kernel.speeds[0], name=f"{model.name}, {tokens} tokens", shape=row.shape(model, tokens), peer=None)
        for model in MODELS
        for tokens in TOKENS
    )
