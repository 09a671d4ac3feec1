"""What the suite runs for ``fused_qk_rmsnorm_rope_gate``, and what it expects."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.rotary.cases_shared import (
    COMMON_CASES,
    EPSILON,
    FAR,
    QWEN,
    SHARED_MUTANTS,
    TIMED,
    WIDE,
    draw_rotary,
    sizes,
)
from kernels_smoke.rotary.reference import norm_and_rotate
from kernels_smoke.suite.correctness.compare import Exact, Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, case, far, here

LAYOUT = ("out_stride", "gate_stride", "own")  # of the inputs: what says how to call, and no argument


def draw_inputs(
    draw: Draw,
    *,
    tokens: int,
    heads: tuple[int, int],
    head_dim: int,
    rotary_dim: int,
    dtype: torch.dtype = BF16,
    zero_centred: bool = True,
    padding: int = 0,
    row_stride: int = 0,
    out_stride: int = 0,
    gate_stride: int = 0,
    own: bool = False,
    scale: float = 1.0,
    largest: float = 0.0,
    **rotary: Any,
) -> Inputs:
    """Draw the projections of ``heads`` = (query heads, key heads), and the rest.

    Rows are ``padding`` elements further apart than they are wide, or ``row_stride`` elements. Those of the results
    are ``out_stride`` elements apart, those of the gates ``gate_stride`` when that is given. ``own``: the function
    makes its results itself.
    """
    query_heads, key_heads = heads
    widths = {"query_gate": query_heads * 2 * head_dim, "key": key_heads * head_dim}
    drawn = {
        name: draw.rows(
            tokens,
            width,
            dtype=dtype,
            scale=scale,
            largest=largest,
            row_stride=row_stride or width + padding,
            name=name,
        )
        for name, width in widths.items()
    }
    return {
        **drawn,
        **draw_rotary(draw, tokens=tokens, head_dim=head_dim, rotary_dim=rotary_dim, dtype=dtype, **rotary),
        "query_heads": query_heads,
        "key_heads": key_heads,
        "zero_centred": zero_centred,
        "out_stride": out_stride,
        "gate_stride": gate_stride or out_stride,
        "own": own,
    }


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Queries, keys, gates, with rows ``out_stride`` elements apart, of gates ``gate_stride``."""
    tokens, width = inputs["query_gate"].shape
    dtype, stride = inputs["query_gate"].dtype, inputs["out_stride"]
    return {
        "query": ((tokens, width // 2), dtype, stride),
        "key_out": (tuple(inputs["key"].shape), dtype, stride),
        "gate": ((tokens, width // 2), dtype, inputs["gate_stride"]),
    }


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    arguments = {name: value for name, value in inputs.items() if name not in LAYOUT}
    out = tuple(outputs[name] for name in ("query", "key_out", "gate"))
    if inputs["own"]:
        made = module.fused_qk_rmsnorm_rope_gate(**arguments, epsilon=EPSILON)
        for result, its in zip(out, made, strict=True):
            result.copy_(its)
        return made
    return module.fused_qk_rmsnorm_rope_gate(**arguments, epsilon=EPSILON, out=out)


def reference(inputs: Inputs) -> Tensors:
    """All three results."""
    query_gate, key = inputs["query_gate"], inputs["key"]
    tokens, head_dim = len(query_gate), len(inputs["q_weight"])
    query, gate = query_gate.reshape(tokens, inputs["query_heads"], 2 * head_dim).split(head_dim, dim=2)
    shared = {name: inputs[name] for name in ("cos_sin", "positions", "zero_centred")}
    query = norm_and_rotate(query, inputs["q_weight"], epsilon=EPSILON, **shared)
    heads = key.reshape(tokens, inputs["key_heads"], head_dim)
    normed_key = norm_and_rotate(heads, inputs["k_weight"], epsilon=EPSILON, **shared)
    width = query_gate.shape[1] // 2
    return {
        "query": query.reshape(tokens, width),
        "key_out": normed_key.reshape(key.shape),
        "gate": gate.reshape(tokens, width),
    }


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Every head and gate in and out; positions and their angles in."""
    cos_sin = inputs["cos_sin"]
    used = min(len(cos_sin), len(inputs["positions"])) * cos_sin.shape[1] * cos_sin.itemsize
    tensors = (inputs["query_gate"], inputs["key"], inputs["positions"], *outputs.values())
    return Work(bytes=sum(tensor.nbytes for tensor in tensors) + used)


CASES = (
    case("as in Qwen 3.5", "quick", tokens=65, **QWEN),
    here("fp16, 96 wide, 32 rotated", "quick", tokens=13, **sizes(3, 2, 96, 32), dtype=FP16, padding=16),
    *COMMON_CASES,
    case("plain weights", tokens=33, **QWEN, zero_centred=False),
    case("40 and 20 heads of 64", tokens=33, **WIDE),
    case("strided rows", tokens=7, **QWEN, padding=8, cache_stride=72),
    case("strided results", tokens=7, **QWEN, out_stride=4104),
    here("fp32, 64 wide, all rotated", tokens=13, **sizes(2, 1, 64, 64), dtype=FP32),
    here("fp32, odd widths", tokens=13, **sizes(3, 1, 33, 6), dtype=FP32, padding=5, cache_stride=7),
    here("fp16, strided results", tokens=3, **sizes(2, 2, 64, 32), dtype=FP16, out_stride=144),
    here("fp16, gates strided otherwise", tokens=3, **sizes(2, 2, 64, 32), dtype=FP16, out_stride=144, gate_stride=160),
    here("fp16, its own results", tokens=5, **sizes(3, 2, 64, 32), dtype=FP16, padding=16, own=True),
    here("fp16, plain weights", tokens=3, **sizes(2, 1, 128, 64), dtype=FP16, zero_centred=False),
    far("offsets above 2^31 in", tokens=3, **QWEN, row_stride=FAR),
    far("offsets above 2^31 out", tokens=3, **QWEN, out_stride=FAR),
    *(
        case(
            f"sweep: {head_dim} wide, {rotary_dim} rotated, {str(dtype)[6:]}",
            "deep",
            tokens=517,
            **sizes(7, 3, head_dim, rotary_dim),
            dtype=dtype,
        )
        for dtype in (BF16, FP16, FP32)
        for head_dim, rotary_dim in ((64, 64), (96, 48), (128, 64), (256, 64))
    ),
)

MUTANTS = (
    *SHARED_MUTANTS,
    Mutant(
        "keys normed with the queries' weight",
        "tl.where(is_key, k_weight_pointer,",
        "tl.where(is_key, q_weight_pointer,",
    ),
    Mutant("the query copied for the gate", "tl.load(source + HEAD_DIM + columns", "tl.load(source + columns"),
    Mutant("the gates' place forgotten between heads", "tl.where(is_key, HEAD_DIM, 2 * HEAD_DIM)", "HEAD_DIM"),
    Mutant(
        "gates as far apart as a block is wide",
        "gate_out_stride + head * HEAD_DIM",
        "gate_out_stride + head * HEAD_BLOCK",
    ),
    Mutant("stride of the wrong input", "tl.where(is_key, key_stride, query_gate_stride)", "key_stride"),
    Mutant("gates with the stride of the queries", "token * gate_out_stride", "token * query_out_stride"),
    Mutant(
        "queries with the stride of the gates",
        "tl.where(is_key, key_out_stride, query_out_stride)",
        "tl.where(is_key, key_out_stride, gate_out_stride)",
    ),
    Mutant(
        "keys with the stride of the queries", "tl.where(is_key, key_out_stride, query_out_stride)", "query_out_stride"
    ),
    Mutant(
        "one tensor for its own queries and gates",
        "query_out, gate_out = (allocated(query_gate.new_empty(tokens, query_heads * head_dim)) for _ in range(2))",
        "query_out = gate_out = allocated(query_gate.new_empty(tokens, query_heads * head_dim))",
    ),
    Mutant("stride of the wrong result", "token * gate_out_stride", "token * key_out_stride"),
)

KERNEL = Kernel(
    name="fused_qk_rmsnorm_rope_gate",
    module="kernels_smoke.rotary.fused_qk_rmsnorm_rope_gate",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=reference,
    checks={"query": Rounded(), "key_out": Rounded(), "gate": Exact()},
    cases=CASES,
    mutants=MUTANTS,
    speeds=(Speed("8192 tokens, 16/4 heads of 256, 64 rotated", TIMED, bar=1.23, work=work),),
)
