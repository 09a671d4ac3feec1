"""What the suite runs for qk_clip, and what it expects."""

import torch

from kernels_smoke.muon import reference
from kernels_smoke.suite.correctness.compare import Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, Work, big, case, here

ARGUMENTS = ("query_weight", "key_weight", "max_logits", "threshold")


def draw_inputs(
    draw: Draw,
    *,
    heads: int,
    key_heads: int,
    head_dim: int,
    width: int,
    dtype: torch.dtype = BF16,
    strides: tuple[int, int] = (0, 0),
    largest: float = 250.0,
    threshold: float = 100.0,
) -> Inputs:
    """Draw both weights, and greatest logits up to ``largest``; those of the first head are below the threshold."""
    query, key = (
        draw.normal(count * head_dim, width, dtype=dtype, row_stride=stride, name=name)
        for name, count, stride in zip(("query_weight", "key_weight"), (heads, key_heads), strides, strict=True)
    )
    greatest = draw.uniform(heads, low=0.2 * threshold, high=largest, dtype=FP32, name="max_logits")
    if draw.device != "meta":
        greatest[0] = threshold
    return {"query_weight": query, "key_weight": key, "max_logits": greatest, "threshold": threshold}


def expected(inputs: Inputs) -> Tensors:
    """Both weights in float64."""
    return dict(zip(ARGUMENTS, reference.qk_clip(**{name: inputs[name] for name in ARGUMENTS}), strict=False))


def work(inputs: Inputs, _outputs: Tensors) -> Work:
    """Both weights in and out: nearly every head is above the threshold where that is timed."""
    return Work(bytes=2 * (inputs["query_weight"].nbytes + inputs["key_weight"].nbytes))


KERNEL = Kernel(
    name="qk_clip",
    module="kernels_smoke.muon.qk_clip",
    inputs=draw_inputs,
    outputs=lambda _inputs: {},
    launch=lambda module, inputs, _outputs: module.qk_clip(**{name: inputs[name] for name in ARGUMENTS}),
    reference=expected,
    checks={"query_weight": Rounded(), "key_weight": Rounded()},
    modifies=("query_weight", "key_weight"),
    cases=(
        case("64 heads of 128", "quick", heads=64, key_heads=64, head_dim=128, width=7168),
        case("32 heads, 8 key heads, strided", heads=32, key_heads=8, head_dim=64, width=1000, strides=(1003, 1100)),
        case("12 heads, 4 key heads, float32", heads=12, key_heads=4, head_dim=80, width=129, dtype=FP32),
        case("none above the threshold", heads=8, key_heads=2, head_dim=64, width=512, largest=90.0),
        big("40,000 rows", heads=400, key_heads=400, head_dim=100, width=64),
        here("float16, 6 heads, 2 key heads", "quick", heads=6, key_heads=2, head_dim=4, width=50, dtype=FP16),
        here("float32, heads alone, strided", heads=3, key_heads=3, head_dim=2, width=33, dtype=FP32, strides=(40, 50)),
        here("float16, another threshold", heads=4, key_heads=1, head_dim=2, width=20, dtype=FP16, threshold=30.0),
    ),
    mutants=(
        Mutant("the whole factor in both", "factor = tl.sqrt(tl.min(", "factor = (tl.min("),
        Mutant("the key head of another query head", "head if KEY else head // GROUP", "head if KEY else head % GROUP"),
        Mutant("the greatest factor of a group", "tl.min(tl.where", "tl.max(tl.where"),
        Mutant("queries as their group", "threshold / own, 1.0) / factor", "threshold / own, 1.0) * 0.0 + factor"),
        Mutant("rows without gaps", "row * row_stride", "row * width"),
        Mutant(
            "the last element omitted",
            "(values.to(tl.float32) * factor).to(weight.dtype.element_ty), mask=o_n < width",
            "(values.to(tl.float32) * factor).to(weight.dtype.element_ty), mask=o_n < width - 1",
        ),
    ),
    speeds=(
        Speed(
            "128 heads of 128 x 7168",
            {"heads": 128, "key_heads": 128, "head_dim": 128, "width": 7168, "largest": 1e4},
            bar=1.12,
            work=work,
        ),
    ),
)
