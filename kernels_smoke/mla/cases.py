"""What the suite runs for the decoding of latent attention, and what it expects."""

from collections.abc import Mapping, Sequence
from typing import Any

import torch

from kernels_smoke.attention.cases_inputs import draw_table, pages_of, spoil
from kernels_smoke.mla import reference
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import FP16, FP32, Draw
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

PARTS = "kernels_smoke.attention.parts"
LATENT_ATTENTION = "kernels_smoke.mla.latent_attention"
NAMES = ("query", "latent_cache", "page_table", "sequence_lengths")


def draw_inputs(
    draw: Draw,
    *,
    lengths: Sequence[int],
    heads: int = 128,
    latent_dim: int = 512,
    rope: int = 64,
    page_size: int = 64,
    dtype: torch.dtype = torch.bfloat16,
    spare: int = 1,
    keys: float = 1.0,
    scale: float = 192**-0.5,
    query_stride: Strides = 0,
    cache_stride: Strides = 0,
    table_stride: int = 0,
    out_stride: Strides = 0,
) -> Inputs:
    """Draw the arguments for sequences of ``lengths``, whose pages are in random order.

    ``spare``: pages that no sequence has. All of the cache that no sequence has is NaN. ``keys``: standard deviation.
    """
    width = latent_dim + rope
    counts = [pages_of(length, page_size) for length in lengths]
    pages = sum(counts) + spare
    query = draw.normal(len(lengths), heads, width, dtype=dtype, row_stride=query_stride, name="query")
    cache = draw.normal(pages, page_size, width, dtype=dtype, scale=keys, row_stride=cache_stride, name="latent_cache")
    most = max(counts, default=0)
    table = draw_table(draw, lengths, page_size, pages=pages, most=most, row_stride=table_stride)
    if cache.device.type != "meta":
        spoil(cache, table, lengths)
    return {
        "query": query,
        "latent_cache": cache,
        "page_table": table,
        "sequence_lengths": draw.place(torch.tensor(lengths, dtype=torch.int32), name="sequence_lengths"),
        "scale": scale,
        "latent_dim": latent_dim,
        "lengths": tuple(lengths),
        "out_stride": out_stride,
    }


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """A result [sequences, heads, latent_dim]."""
    query = inputs["query"]
    return {"out": ((*query.shape[:2], inputs["latent_dim"]), query.dtype, inputs["out_stride"])}


def launch(module: Any, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.mla_decode(
        **{name: inputs[name] for name in NAMES},
        scale=inputs["scale"],
        latent_dim=inputs["latent_dim"],
        out=outputs["out"],
    )


def expected(inputs: Inputs) -> Tensors:
    """Attention in float64."""
    tensors = {name: inputs[name] for name in NAMES}
    return {"out": reference.mla_decode(**tensors, scale=inputs["scale"], latent_dim=inputs["latent_dim"])}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """The cache's rows of every sequence once, queries and results; two products for each head and position."""
    query, positions = inputs["query"], sum(inputs["lengths"])
    _, heads, width = query.shape
    read = positions * width * query.itemsize + query.nbytes + inputs["page_table"].nbytes
    return Work(bytes=read + outputs["out"].nbytes, flops=2 * positions * heads * (width + inputs["latent_dim"]))


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too: few narrow heads, float32 unless said otherwise."""
    return here(name, level, **{"dtype": FP32, "heads": 3, "latent_dim": 32, "rope": 16, "page_size": 16, **shape})


MIXED = (1, 64, 700, 0, 63, 65, 2049, 130)
APART = {
    "query_stride": (131 * 584, 584, 1),
    "cache_stride": (66 * 592, 592, 1),
    "table_stride": 40,
    "out_stride": (130 * 520, 520, 1),
}
CASES = (
    case("DeepSeek-V3, 128 heads", "quick", lengths=MIXED),
    case("16 heads", lengths=MIXED, heads=16),
    case("70 heads", "deep", lengths=MIXED, heads=70),
    case("one long sequence", lengths=(20_011,), heads=16),
    case("128 heads, few sequences", lengths=(20_011, 1, 129)),
    case("128 heads, pages of 128, float16", lengths=MIXED, page_size=128, dtype=FP16),
    case("128 heads, all further apart", lengths=MIXED, **APART),
    case("128 heads, rows that TMA cannot load", "deep", lengths=MIXED, cache_stride=580),
    case("70 heads, cache offsets above 2^31", "deep", lengths=(200, 70), heads=70, cache_stride=2**23),
    case("pages of 16", "deep", lengths=MIXED, page_size=16),
    case("pages of 24, float16", lengths=MIXED, page_size=24, dtype=FP16, heads=20),
    big("24 x 3000", lengths=(3000,) * 24, spare=0),
    case("scores up to 1e3", "deep", lengths=MIXED, keys=30.0),
    case("latent vectors of 256, keys of 32", "deep", lengths=MIXED, latent_dim=256, rope=32),
    case("float32", "deep", lengths=MIXED, heads=20, dtype=FP32),
    case("cache offsets above 2^31", "deep", lengths=(200, 70), heads=16, cache_stride=2**23),
    case("result offsets above 2^31", "deep", lengths=(70, 20, 3), heads=2, out_stride=2**29 + 8),
    small("float32, odd lengths", "quick", lengths=(1, 100, 0, 33)),
    small("float16, more heads than a block", lengths=(50,), heads=19, dtype=FP16),
    small("pages of 5, odd widths", lengths=(3, 41), page_size=5, latent_dim=27, rope=9),
    small("pages of two tiles", lengths=(70, 32), page_size=32),
    small("float16, scores up to 1e3", lengths=(70, 20), keys=100.0, dtype=FP16),
    small("query further apart", lengths=(40, 5), query_stride=(200, 52, 1)),
    small("positions of the cache further apart", lengths=(40, 5), cache_stride=52),
    small("pages of the cache further apart", lengths=(40, 5), cache_stride=(52 * 17, 52, 1)),
    small("page table further apart", lengths=(40, 5), table_stride=7),
    small("result further apart", lengths=(40, 5), out_stride=(170, 36, 1)),
    small("no sequence", lengths=()),
)
MUTANTS = (
    Mutant("positions behind the end", "seen = position < end", "seen = position >= 0", LATENT_ATTENTION),
    Mutant("the key omitted", "tl.dot(q_rope, r.T,", "0.0 * tl.dot(q_rope, r.T,", LATENT_ATTENTION),
    Mutant(
        "segments with equal weights",
        "alpha = tl.exp2(m_s - tl.where",
        "alpha = tl.exp2(m_s - m_s + 0 * tl.where",
        PARTS,
    ),
    Mutant("the last segment omitted", "exists = segment < used", "exists = segment < used - 1", PARTS),
    Mutant("pages one tile late", "page = next_page", "page = page", LATENT_ATTENTION),
    Mutant("heads of the result taken for dense", "out_head_stride=out.stride(1)", "out_head_stride=latent_dim"),
)

KERNELS = {
    "mla_decode": Kernel(
        name="mla_decode",
        module="kernels_smoke.mla.mla_decode",
        inputs=draw_inputs,
        outputs=outputs,
        launch=launch,
        reference=expected,
        checks={"out": Near(bfloat16=4e-3, float16=5e-4, float32=1e-6)},
        cases=CASES,
        mutants=MUTANTS,
        speeds=(
            Speed("128 x 4096, 16 heads", {"lengths": (4096,) * 128, "heads": 16, "spare": 0}, bar=1.28, work=work),
            Speed("64 x 4096, 128 heads", {"lengths": (4096,) * 64, "spare": 0}, bar=1.48, work=work),
            Speed("1 x 131072, 16 heads", {"lengths": (131_072,), "heads": 16, "spare": 0}, bar=1.58, work=work),
        ),
        matrix_instructions=True,
        spills={"sm_90": 8},  # outside the loop over tiles
    )
}
