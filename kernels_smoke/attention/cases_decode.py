"""What the suite runs for paged_attention_decode, and what it expects."""

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.attention import cases_inputs, reference
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import (
    Case,
    Inputs,
    Kernel,
    Mutant,
    Output,
    Speed,
    Strides,
    Tensors,
    Work,
    big,
    case,
    here,
)

FP8 = torch.float8_e4m3fn
PARTS = "kernels_smoke.attention.parts"
NAMES = ("query", "key_cache", "value_cache", "page_table", "sequence_lengths")
OPTIONS = ("scale", "key_scale", "value_scale", "window", "sinks", "soft_cap")


def draw_inputs(
    draw: Draw,
    *,
    lengths: Sequence[int],
    heads: tuple[int, int] = (32, 8),
    dtype: torch.dtype = BF16,
    fp8: bool = False,
    window: int | None = None,
    sinks: float = 0.0,
    soft_cap: float | None = None,
    row_stride: Strides = 0,
    out_stride: Strides = 0,
    **shape: Any,
) -> Inputs:
    """Draw a batch of sequences of ``lengths`` with one query token each, as for paged_attention.

    ``fp8``: caches in fp8 with a scale for each head of keys. ``sinks``: their standard deviation, none when 0.
    """
    batch = tuple((1, length) for length in lengths)
    drawn = dict(cases_inputs.draw_inputs(draw, batch=batch, heads=heads, dtype=dtype, row_stride=row_stride, **shape))
    given = {name: drawn[name] for name in (*NAMES, "scale")}
    for name in ("key_cache", "value_cache") if fp8 else ():
        strides = given[name].stride()
        given[name] = draw.place(given[name].to(FP8), row_stride=strides, name=name)
        scale = draw.uniform(heads[1], low=0.5, high=2.0, dtype=FP32, name=name.replace("cache", "scale"))
        given[name.replace("cache", "scale")] = scale
    if sinks:
        given["sinks"] = draw.normal(heads[0], dtype=dtype, scale=sinks, name="sinks")
    return {**given, "window": window, "soft_cap": soft_cap, "lengths": tuple(lengths), "out_stride": out_stride}


def arguments(inputs: Inputs) -> dict[str, Any]:
    """What is passed by name."""
    return {name: inputs.get(name) for name in (*NAMES, *OPTIONS)}


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """A result like ``query``."""
    query = inputs["query"]
    return {"out": (tuple(query.shape), query.dtype, inputs["out_stride"])}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.paged_attention_decode(**arguments(inputs), out=outputs["out"])


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Keys and values that are seen once, queries and results; and 4 operations for each pair that is seen."""
    query, keys = inputs["query"], inputs["key_cache"]
    seen = sum(min(length, inputs["window"] or length) for length in inputs["lengths"])
    cached = 2 * seen * keys.shape[2] * keys.shape[3] * keys.itemsize
    return Work(bytes=cached + query.nbytes + outputs["out"].nbytes, flops=4 * seen * query.shape[1] * query.shape[2])


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too: a few narrow heads, float32 unless said otherwise."""
    return here(name, level, **{"dtype": FP32, "heads": (4, 2), "head_dim": 16, **shape})


MIXED = (1, 15, 16, 17, 300, 0, 2049, 4096)
EVERYTHING = {"window": 200, "sinks": 3.0, "soft_cap": 1.5}
CASES = (
    case("fp8 cache", "quick", lengths=MIXED, fp8=True),
    case("window, sinks, soft cap", lengths=MIXED, **EVERYTHING),
    case("fp8 cache, window, sinks, soft cap, float16", lengths=MIXED, fp8=True, dtype=FP16, **EVERYTHING),
    case("one long sequence, fp8 cache", "deep", lengths=(20_011,), fp8=True, heads=(8, 1)),
    case("sinks, several segments", lengths=(5000, 33), heads=(8, 2), sinks=8.0),
    case("heads of 64, sinks, window of 128", lengths=MIXED, heads=(64, 8), head_dim=64, sinks=2.0, window=128),
    case("heads of 256, soft cap", "deep", lengths=MIXED, heads=(8, 4), head_dim=256, soft_cap=50.0),
    case("pages of 560", "deep", lengths=MIXED, page_size=560),
    big("300 sequences", lengths=(40, 90, 3) * 100, fp8=True),
    case("offsets above 2^31", "deep", lengths=(70, 33), heads=(4, 2), head_dim=64, row_stride=2**24),
    case("odd widths: 127", "deep", lengths=MIXED, heads=(6, 2), head_dim=127, dtype=FP16),
    small("float32", "quick", lengths=(1, 60, 0, 33)),
    small("float16, fp8 cache", lengths=(1, 60), fp8=True, dtype=FP16),
    small("window", lengths=(5, 60, 41), window=18),
    small("window of one position", lengths=(5, 33), window=1),
    small("sinks", lengths=(5, 0, 60), sinks=3.0),
    small("soft cap", lengths=(5, 60), soft_cap=0.7),
    small("three queries for a head of keys, pages of 5", lengths=(19, 33), heads=(3, 1), head_dim=12, page_size=5),
    small("float16, scores up to 1e3, its own scale", lengths=(40, 18), queries=16.0, keys=8.0, scale=0.5, dtype=FP16),
    small("query further apart", lengths=(40, 5), query_stride=(100, 20, 1)),
    small("caches further apart", lengths=(40, 5), row_stride=(820, 50, 22, 1), query_stride=16),
    small("page table further apart", lengths=(40, 5), table_stride=9),
    small("result further apart", lengths=(40, 5), out_stride=(90, 20, 1)),
    small("no sequence", lengths=()),
)
MUTANTS = (
    Mutant("a position too many in the window", "position >= end - window", "position >= end - window - 1"),
    Mutant("a sink in each segment", "first = segment == 0", "first = segment >= 0"),
    Mutant("no soft cap", "if SOFT_CAP:", "if False:"),
    Mutant("the first head's scale of values", "tl.load(value_scale + kv_head)", "tl.load(value_scale)"),
    Mutant("keys not scaled", "else tl.load(key_scale + kv_head)", "else 1.0"),
    Mutant("segments from the first tile", "first_tile = begin + segment", "first_tile = segment"),
)

KERNEL = Kernel(
    name="paged_attention_decode",
    module="kernels_smoke.attention.paged_attention_decode",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=lambda inputs: {"out": reference.paged_attention_decode(**arguments(inputs))},
    checks={"out": Near(bfloat16=4e-3, float16=5e-4, float32=1e-6)},
    cases=CASES,
    mutants=MUTANTS,
    speeds=(
        Speed("fp8 cache, 64 x 4096", {"lengths": (4096,) * 64, "fp8": True, "spare": 0}, bar=1.5, work=work),
        Speed(
            "window of 1024, sinks, soft cap, 64 x 2048",
            {"lengths": (2048,) * 64, "window": 1024, "sinks": 2.0, "soft_cap": 30.0, "spare": 0},
            bar=1.22,
            work=work,
        ),
    ),
    matrix_instructions=True,
)
