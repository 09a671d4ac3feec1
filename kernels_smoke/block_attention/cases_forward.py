"""What the suite runs for ``block_diagonal_attention``, and what it expects."""

from collections.abc import Mapping
from types import ModuleType

from kernels_smoke.block_attention import reference
from kernels_smoke.block_attention.cases_shared import (
    BATCH,
    COMMON_CASES,
    JAGGED,
    MANY,
    SHARED_MUTANTS,
    WHOLE,
    draw_attention,
    exactly,
    here,
)
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, case


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """The result looks like ``q``, with heads ``out_stride`` elements apart."""
    strides = inputs["strides"].get("out", inputs["out_stride"])
    return {"out": (tuple(inputs["q"].shape), inputs["q"].dtype, strides)}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    arguments = {name: inputs[name] for name in ("q", "k", "v", "blocks", "scale")}
    return module.block_diagonal_attention(**arguments, out=outputs["out"])


def expected(inputs: Inputs) -> Tensors:
    """The result in float64."""
    return {"out": reference.attention(*(inputs[name] for name in ("q", "k", "v", "lengths", "scale")))}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Three tensors in, one out; two products for each block."""
    read = sum(inputs[name].nbytes for name in ("q", "k", "v", "blocks"))
    return Work(bytes=read + outputs["out"].nbytes, flops=2 * 2 * 64 * inputs["q"].numel())


KERNEL = Kernel(
    name="block_diagonal_attention",
    module="kernels_smoke.block_attention.block_diagonal_attention",
    inputs=draw_attention,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks={"out": Near(bfloat16=4e-3)},
    cases=(
        *COMMON_CASES,
        case("float16", lengths=MANY, heads=2, head_dim=128, dtype=FP16),
        case("strided tokens", lengths=JAGGED, heads=2, head_dim=128, token_stride=3 * 256 + 8, out_stride=136),
        case("no token", lengths=(0, 0), heads=2, head_dim=128),
        exactly("fp32, jagged sequences", lengths=JAGGED, heads=2, head_dim=64),
        exactly("fp32, strided tokens", lengths=(66,), heads=2, head_dim=64, token_stride=400, out_stride=70),
        here("fp16, values of 1e4", lengths=(64, 5), heads=1, head_dim=64, values=1e4),
        *(
            case(f"{heads} heads of {head_dim}, {str(dtype)[6:]}", "deep", **shape, head_dim=head_dim, dtype=dtype)
            for dtype in (BF16, FP16)
            for head_dim in (64, 128)
            for heads in (1, 7)
            for shape in ({"lengths": tuple(range(200)), "heads": heads},)
        ),
    ),
    mutants=(
        *SHARED_MUTANTS,
        Mutant("not divided by the sum", "* (1.0 / l_i)", "* 1.0"),
        Mutant("keys taken for values", "b_v = _load(v + head * v_head", "b_v = _load(k + head * k_head"),
        Mutant("heads at the queries' distance", "out + head * out_head", "out + head * q_head"),
        Mutant("k at the distances of q", "strides(q=q, k=k,", "strides(q=q, k=q,"),
        Mutant("tokens of the result without gaps", "HEAD_DIM, out_token", "HEAD_DIM, heads * out_head"),
    ),
    speeds=(
        Speed("691,200 tokens, 4 heads of 128", {"lengths": WHOLE, "heads": 4, "head_dim": 128}, bar=1.05, work=work),
        Speed(
            "1,152 jagged sequences, 4 heads of 128",
            {"lengths": BATCH, "heads": 4, "head_dim": 128},
            bar=1.10,
            work=work,
        ),
    ),
    matrix_instructions=True,
)
