"""What the suite runs for paged attention, and what it expects."""

import os
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.attention import cases_decode, reference
from kernels_smoke.attention.cases_inputs import ARGUMENTS, METADATA, draw_inputs
from kernels_smoke.attention.cases_speed import SPEEDS
from kernels_smoke.suite.correctness.compare import NearWhereWritten
from kernels_smoke.suite.correctness.draw import FP16, FP32, POISON
from kernels_smoke.suite.model import Case, Inputs, Kernel, Mutant, Output, Tensors, big, case, far, here

PARTS = "kernels_smoke.attention.parts"
TILED_SOFTMAX = "kernels_smoke.attention.tiled_softmax"


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """A result like ``query``, with the strides ``out_stride``."""
    query = inputs["query"]
    return {"out": (tuple(query.shape), query.dtype, inputs["out_stride"])}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function; or, where there is an earlier batch, a replay of the graph captured for that."""
    arguments = {name: inputs[name] for name in ARGUMENTS}
    out = outputs["out"]
    if "earlier_page_table" not in inputs or out.device.type == "meta":
        return module.paged_attention(**arguments, out=out)

    buffers = {name: inputs[f"earlier_{name}"].clone() for name in METADATA}

    def call() -> object:
        return module.paged_attention(**{**arguments, **buffers}, out=out)

    call()
    replay = _captured(call) if out.device.type == "cuda" and _has_pool() else call
    out.view(torch.uint8).fill_(POISON)
    for name, buffer in buffers.items():
        buffer.copy_(inputs[name])
    return replay()


def _has_pool() -> bool:
    """Whether torch allocates from a pool: without one it can allocate nothing while it captures a graph."""
    return os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING", "0") == "0"


def _captured(call: Any) -> Any:
    """What runs again what ``call`` launches, with nothing of its code on the host; it waits for the end."""
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()

    def replay() -> None:
        graph.replay()
        torch.cuda.synchronize()  # the graph's memory is free when this function is

    return replay


def expected(inputs: Inputs) -> Tensors:
    """Attention in float64."""
    names = ("query", "key_cache", "value_cache", *METADATA, "scale")
    return {"out": reference.paged_attention(**{name: inputs[name] for name in names})}


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too: a few narrow heads, float32 unless said otherwise."""
    return here(name, level, **{"dtype": FP32, "heads": (2, 1), "head_dim": 16, **shape})


# The first token of the last but one does not see the positions of its last tile, which is a segment by itself.
MIXED = ((1, 700), (130, 130), (1, 16), (0, 9), (37, 300), (1, 1), (4, 1029), (3, 130), (1, 17))
MANY = ((1, 40), (3, 90), (0, 3)) * 100
LITTLE = ((1, 53), (10, 21), (0, 9), (1, 1))

CASES = (
    case("prompts and decoding in one batch", "quick", batch=MIXED),
    case("decoding", "quick", batch=tuple((1, length) for length in (1, 15, 16, 17, 300, 2049, 4096)), longest=True),
    small("float32, prompts and decoding", "quick", batch=LITTLE, heads=(4, 2)),
    case("tokens before the first sequence", batch=MIXED, first=200, tokens=400),
    case("the same, pages of 24", batch=MIXED, first=200, tokens=400, page_size=24),
    case("a prompt of 1000", batch=((1000, 1000),), longest=True),
    *(case(f"stage {stage}", batch=MIXED, variant=stage) for stage in ("naive", "query_blocks", "segments")),
    *(case(f"stage {stage}", batch=MIXED, variant=stage) for stage in ("tiles", "static")),
    case("stage static, more blocks than programs", batch=MANY, heads=(8, 2), variant="static"),
    case("a page holds a whole tile", batch=MIXED, page_size=128),
    case("pages of 64, a prompt behind a context", batch=((333, 1001),), page_size=64, longest=True),
    case(
        "pages of keys and of values by turns",
        batch=MIXED,
        row_stride=(2 * 16 * 8 * 128, 8 * 128, 128, 1),
        query_stride=(32 * 128, 128, 1),
    ),
    case("float16, one head of keys for 64, tiles", batch=MIXED, heads=(64, 1), dtype=FP16, variant="tiles"),
    case("pages of 560 positions, as hybrid models have them", batch=MIXED, page_size=560),
    case(
        "a graph replayed for another batch",
        batch=MIXED,
        variant="static",
        tokens=300,
        earlier=((20, 20),) * len(MIXED),
    ),
    case("values of 1e4", batch=MIXED, values=1e4, variant="static"),
    case("one long sequence, decoding", batch=((1, 20011),), longest=True),
    big("positions up to 140,000", batch=((1, 140_001), (3, 70_000), (40, 33_333), (1, 5))),
    case("pages of 128, long contexts", batch=((1, 9001), (70, 5137), (1, 4097), (1, 4096)), page_size=128),
    big("pages above 2^16", batch=MANY, heads=(8, 2), variant="static", spare=140_000),
    case("five queries for a head of keys, 80 wide", "deep", batch=MIXED, heads=(10, 2), head_dim=80),
    case("heads of 256, float16", "deep", batch=MIXED, heads=(8, 4), head_dim=256, dtype=FP16),
    case("heads of 64, one for each head of keys", "deep", batch=MIXED, heads=(4, 4), head_dim=64),
    case("one head of keys for 32", "deep", batch=MIXED, heads=(32, 1)),
    case("one head of keys for 128, 256 wide", "deep", batch=MIXED, heads=(128, 1), head_dim=256),
    case("one head of keys for 71", "deep", batch=MIXED, heads=(71, 1), head_dim=64),
    *(
        case(
            f"decoding, one head of keys for 128, {width} wide",
            "deep",
            batch=((1, 300),),
            heads=(128, 1),
            head_dim=width,
        )
        for width in (128, 256)
    ),
    case("float32", "deep", batch=MIXED, heads=(8, 2), dtype=FP32),
    case("odd widths: 127", "deep", batch=MIXED, heads=(6, 2), head_dim=127, dtype=FP16),
    case("scores up to 1e4", "deep", batch=MIXED, queries=40.0, keys=24.0),
    case("300 sequences", "deep", batch=MANY, heads=(8, 2)),
    case("a prompt of 5137 behind a context", "deep", batch=((5137, 9000),), heads=(8, 2), longest=True),
    far("result offsets above 2^31", batch=((2, 20), (1, 3)), heads=(2, 1), head_dim=64, out_stride=2**29 + 8),
    far("element offsets above 2^31", batch=((3, 70), (1, 33)), heads=(4, 2), head_dim=64, row_stride=2**24),
    *(
        case(
            f"{stage}, graph, pages of {size}",
            "deep",
            batch=MIXED,
            variant=stage,
            page_size=size,
            tokens=400,
            earlier=(((11, 11), (1, 200)) * 5)[: len(MIXED)],
        )
        for stage in ("naive", "query_blocks", "segments", "tiles", "static", "auto")
        for size in (16, 64)
    ),
    small("float16, naive", batch=((1, 20), (2, 18)), variant="naive", dtype=FP16),
    small("float16, query blocks", batch=LITTLE, variant="query_blocks", dtype=FP16, page_size=32),
    small("segments", batch=((1, 70), (3, 40), (2, 3)), variant="segments"),
    small(
        "tiles, pages of 5, three queries for a head of keys",
        batch=((1, 19), (7, 20)),
        variant="tiles",
        page_size=5,
        heads=(3, 1),
        head_dim=12,
    ),
    small(
        "static, pages of 24, strided",
        batch=((1, 40), (9, 30)),
        variant="static",
        page_size=24,
        row_stride=20,
        out_stride=18,
    ),
    small(
        "room for more tokens, the earlier batch forgotten",
        batch=((1, 33), (0, 1), (4, 20)),
        variant="static",
        tokens=9,
        earlier=((3, 30), (1, 2), (1, 33)),
    ),
    small("float32, tokens before the first sequence", batch=((10, 16), (3, 20)), first=17, tokens=32, heads=(4, 2)),
    small("a segment of which a token sees nothing", batch=((2, 33), (3, 50)), variant="segments"),
    small("130 sequences", batch=((1, 3),) * 130, heads=(1, 1), variant="query_blocks"),
    small("float32, one head of keys for 71", batch=((2, 20), (1, 5)), heads=(71, 1)),
    small("float16, decoding", batch=((1, 1), (1, 16), (1, 17)), longest=True, dtype=FP16),
    small("values of 1e4, pages of several tiles", batch=((1, 40), (2, 18)), values=1e4, dtype=FP16, page_size=32),
    small("scores up to 1e3, its own scale", batch=((1, 40), (2, 18)), queries=16.0, keys=8.0, scale=0.5, dtype=FP16),
    small(
        "float16, their own strides",  # a slice of packed rows, caches whose heads lie further apart than positions
        batch=((1, 300), (10, 40), (3, 20)),
        variant="segments",
        heads=(4, 2),
        dtype=FP16,
        query_stride=(160, 20, 1),
        row_stride=(840, 24, 400, 1),
        table_stride=24,
        out_stride=(120, 28, 1),
    ),
    small("no token", batch=((0, 5),)),
    small("no sequence", batch=()),
)

MUTANTS = (
    Mutant(
        "the future is seen",
        "s = tl.where(seen, s",
        "s = tl.where((position < end)[None, :], s",
        TILED_SOFTMAX,
    ),
    Mutant("a token does not see itself", "<= (limit - tile", "< (limit - tile", TILED_SOFTMAX),
    Mutant("whole tiles up to the block's last row", "context + first + 1, 0)", "end, 0)", TILED_SOFTMAX),
    Mutant("the wrong head of keys", "key_cache + kv_head", "key_cache + (1 - kv_head)", TILED_SOFTMAX),
    Mutant("only the first 128 sequences", "range(0, sequences, 128)", "range(0, 128, 128)", TILED_SOFTMAX),
    Mutant("tokens before the first sequence", " - tl.load(cumulative_query_lengths) // QUERIES)", ")", TILED_SOFTMAX),
    Mutant("heads of the next head of keys", "(GROUP % HEADS == 0) |", "(GROUP >= HEADS) |", TILED_SOFTMAX),
    Mutant(
        "infinity less infinity",
        "base = tl.where(m_new ==",
        "base = m_new + 0 * tl.where(m_new ==",
        TILED_SOFTMAX,
    ),
    Mutant("the context forgotten", "context = min(", "context = 0 * min(", TILED_SOFTMAX),
    Mutant("accumulator not rescaled", "v, acc * alpha[:, None]", "v, acc", TILED_SOFTMAX),
    Mutant("sum not rescaled", "l_i * alpha + tl.sum(p", "l_i + tl.sum(p", TILED_SOFTMAX),
    Mutant("segments not rescaled", "tl.sum(o_s * alpha[:, None]", "tl.sum(o_s", PARTS),
    Mutant("the last segment omitted", "exists = segment < used", "exists = segment < used - 1", PARTS),
    Mutant("what is behind the end is read", "kv_mask = (position < end)", "kv_mask = (position >= 0)", TILED_SOFTMAX),
    Mutant("always the beginning of a page", "tile * TILE % PAGE_SIZE + ", "", TILED_SOFTMAX),
    Mutant("pages as large as tiles", "else position % PAGE_SIZE", "else position % TILE", TILED_SOFTMAX),
    Mutant(
        "blocks of empty sequences not counted",
        "start // QUERIES + sequence <= block",
        "start // QUERIES <= block",
        TILED_SOFTMAX,
    ),
    Mutant("tokens of the next sequence written", " & (token < queries)", "", TILED_SOFTMAX),
    Mutant("one item for each program", "items, tl.num_programs(0))", "tl.num_programs(0), items)", TILED_SOFTMAX),
    Mutant("short sequences done as blocks only", "if short:\n        attend", "if not short:\n        attend"),
    Mutant("query tokens without gaps", "place * query_stride", "place * heads * query_head_stride", TILED_SOFTMAX),
    Mutant("results' tokens without gaps", "place * out_stride", "place * heads * out_head_stride", TILED_SOFTMAX),
    Mutant(
        "merged tokens without gaps",
        ".to(tl.int64) * out_stride",
        ".to(tl.int64) * heads * out_head_stride",
        PARTS,
    ),
    Mutant(
        "pages without gaps",
        ".to(tl.int64) * page_stride",
        ".to(tl.int64) * PAGE_SIZE * position_stride",
        TILED_SOFTMAX,
    ),
    Mutant(
        "the page table without gaps",
        ".to(tl.int64) * table_stride",
        ".to(tl.int64) * (capacity // PAGE_SIZE)",
        TILED_SOFTMAX,
    ),
    *(
        Mutant(
            f"heads of the {name} cache without gaps",
            f"{name}_cache + kv_head.to(tl.int64) * kv_head_stride",
            f"{name}_cache + kv_head.to(tl.int64) * HEAD_DIM",
            TILED_SOFTMAX,
        )
        for name in ("key", "value")
    ),
    Mutant(
        "token offsets in 32 bits",
        "place = (start + token).to(tl.int64)",
        "place = start + token",
        TILED_SOFTMAX,
        where=("cuda",),
        why="it takes a result beyond 2^31 elements, gigabytes for a slow interpreter",
    ),
    Mutant(
        "page offsets in 32 bits",
        "page.to(tl.int64) * page_stride",
        "page * page_stride",
        TILED_SOFTMAX,
        where=("cuda",),
        why="it takes a cache beyond 2^31 elements, gigabytes for a slow interpreter",
    ),
)

KERNELS = {
    "paged_attention": Kernel(
        name="paged_attention",
        module="kernels_smoke.attention.paged_attention",
        inputs=draw_inputs,
        outputs=outputs,
        launch=launch,
        reference=expected,
        # Weights are rounded to the dtype of the values before they are multiplied, and the result once more.
        checks={"out": NearWhereWritten(bfloat16=4e-3, float16=5e-4, float32=1e-6)},
        cases=CASES,
        mutants=MUTANTS,
        speeds=SPEEDS,
        matrix_instructions=True,
        spills={"sm_90": 48},  # outside the loops over tiles, with pages of 64 (Triton 3.7)
    ),
    cases_decode.KERNEL.name: cases_decode.KERNEL,
}
