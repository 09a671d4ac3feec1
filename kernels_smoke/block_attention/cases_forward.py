"""What the suite runs for ``block_diagonal_attention``, and what it expects."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType

import torch

from kernels_smoke.block_attention import reference
from kernels_smoke.block_attention.cases_shared import (
    BATCH,
    BF16,
    FAR,
    FP16,
    JAGGED,
    MANY,
    SHARED_MUTANTS,
    STRIDES,
    WHOLE,
    case,
    draw_blocks,
    draw_extreme,
    draw_heads,
    exactly,
    here,
)
from kernels_smoke.suite.compare import Near
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work


def draw_inputs(
    draw: Draw,
    *,
    lengths: tuple[int, ...],
    heads: int,
    head_dim: int,
    dtype: torch.dtype = BF16,
    scale: float = 0.0,
    extreme: bool = False,
    values: float = 1.0,
    head_stride: int = 0,
    token_stride: int = 0,
    out_stride: int = 0,
    strides: Mapping[str, tuple[int, ...]] = {},
) -> Inputs:
    """Draw q, k and v of sequences of ``lengths``, with ``heads`` heads of ``head_dim`` elements.

    ``scale`` 0 is the default. ``extreme``: see ``draw_extreme``. ``values``: standard deviation of v. ``strides``: of
    tensors by name.
    """
    shape = (sum(lengths), heads, head_dim)
    q, k = draw_extreme(draw, *shape) if extreme else (None, None)
    apart = {"dtype": dtype, "head_stride": head_stride, "token_stride": token_stride}
    return {
        "q": draw_heads(draw, *shape, **apart, values=q, strides=strides.get("q", ()), name="q"),
        "k": draw_heads(draw, *shape, **apart, values=k, strides=strides.get("k", ()), name="k"),
        "v": draw_heads(draw, *shape, **apart, scale=values, strides=strides.get("v", ()), name="v"),
        "blocks": draw_blocks(draw, lengths),
        "scale": scale or head_dim**-0.5,
        "lengths": lengths,
        "out_stride": out_stride,
        "strides": strides,
    }


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
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks={"out": Near(bfloat16=4e-3)},
    cases=(
        case("jagged sequences, head of 128", "quick", lengths=MANY, heads=4, head_dim=128),
        case("jagged sequences, head of 64", lengths=MANY, heads=3, head_dim=64),
        case("blocks of 64 and no other", lengths=(64,) * 40, heads=2, head_dim=128),
        case("sequences of one token", lengths=(1,) * 40, heads=2, head_dim=128),
        case("float16", lengths=MANY, heads=2, head_dim=128, dtype=FP16),
        case("strided tokens", lengths=JAGGED, heads=2, head_dim=128, token_stride=3 * 256 + 8, out_stride=136),
        case("heads apart, unaligned", lengths=JAGGED, heads=2, head_dim=64, head_stride=67, out_stride=65),
        case("scores of 6.7e7, many equal", lengths=MANY, heads=2, head_dim=128, extreme=True),
        case("values of 1e4", lengths=MANY, heads=2, head_dim=128, values=1e4),
        case("a scale of 1", lengths=MANY, heads=2, head_dim=64, scale=1.0),
        case("no token", lengths=(0, 0), heads=2, head_dim=128),
        case("one token", lengths=(1,), heads=1, head_dim=64),
        here("fp16, jagged sequences", "quick", lengths=JAGGED, heads=2, head_dim=64),
        exactly("fp32, jagged sequences", lengths=JAGGED, heads=2, head_dim=64),
        exactly("fp32, strided tokens", lengths=(66,), heads=2, head_dim=64, token_stride=400, out_stride=70),
        exactly("fp32, scores of 6.7e7, many equal", lengths=(60,), heads=2, head_dim=64, extreme=True),
        here("fp16, values of 1e4", lengths=(64, 5), heads=1, head_dim=64, values=1e4),
        here("fp16, head of 128, a scale of 1", lengths=(65,), heads=1, head_dim=128, scale=1.0),
        here("fp16, strides of their own", lengths=(70,), heads=2, head_dim=64, strides=STRIDES),
        here("fp16, no token", lengths=(0,), heads=2, head_dim=64),
        case("offsets above 2^31 in", "deep", lengths=(3,), heads=1, head_dim=64, head_stride=FAR),
        case("offsets above 2^31 out", "deep", lengths=(3,), heads=1, head_dim=64, out_stride=FAR),
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
        Mutant("not divided by the sum", "* (1.0 / total)", "* 1.0"),
        Mutant("keys taken for values", "value = _load(v + head * v_head", "value = _load(k + head * k_head"),
        Mutant("heads at the queries' distance", "out + head * out_head", "out + head * q_head"),
        Mutant("k at the distances of q", "strides(q, k, v, out)", "strides(q, q, v, out)"),
        Mutant("heads of v at the distance of q's", "v + head * v_head", "v + head * q_head"),
        Mutant("tokens of the result without gaps", "HEAD_DIM, out_token", "HEAD_DIM, heads * out_head"),
    ),
    speeds=(
        Speed("691,200 tokens, 4 heads of 128", {"lengths": WHOLE, "heads": 4, "head_dim": 128}, bar=1.05, work=work),
        Speed(
            "1,152 jagged sequences, 4 heads of 128",
            {"lengths": BATCH, "heads": 4, "head_dim": 128},
            bar=1.15,
            work=work,
        ),
    ),
    matrix_instructions=True,
)
