"""What the suite runs for ``fused_linear``, and what it expects."""

from types import ModuleType

import torch

from kernels_smoke.fusion import reference
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, here

ARGUMENTS = ("x", "weight", "bias", "norm_weight", "activation", "zero_centred", "epsilon")
EPSILON = 1e-2  # not the default, and large enough to be seen


def draw_inputs(
    draw: Draw,
    *,
    m: int,
    n: int,
    k: int,
    dtype: torch.dtype = BF16,
    activation: str = "none",
    bias: bool = False,
    normed: bool = False,
    zero_centred: bool = False,
    vector_dtype: torch.dtype | None = None,
    scale: float = 1.0,
    x_stride: int = 0,
    weight_stride: int = 0,
    out_stride: int = 0,
) -> Inputs:
    """Draw x [m, k] with the standard deviation ``scale``, weights for results near 1, bias [n], norm weights [k]."""
    size = k**-0.5 if normed else k**-0.5 / scale
    centre = 0.0 if zero_centred else 1.0
    norm_weight = None
    if normed:
        norm_weight = draw.normal(k, dtype=vector_dtype or dtype, scale=0.3, name="norm_weight")
        if draw.device != "meta":
            norm_weight += centre
    return {
        "x": draw.normal(m, k, dtype=dtype, scale=scale, row_stride=x_stride, name="x"),
        "weight": draw.normal(n, k, dtype=dtype, scale=size, row_stride=weight_stride, name="weight"),
        "bias": draw.normal(n, dtype=vector_dtype or dtype, name="bias") if bias else None,
        "norm_weight": norm_weight,
        "activation": activation,
        "zero_centred": zero_centred,
        "epsilon": EPSILON,
        "out_stride": out_stride,
    }


def outputs(inputs: Inputs) -> dict[str, Output]:
    """The result [m, n]."""
    shape = inputs["x"].shape[0], inputs["weight"].shape[0]
    return {"out": (shape, inputs["x"].dtype, inputs["out_stride"])}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.fused_linear(**{name: inputs[name] for name in ARGUMENTS}, out=outputs["out"])


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Everything touched once, and a multiplication and an addition for each element of K."""
    x, weight, out = inputs["x"], inputs["weight"], outputs["out"]
    return Work(bytes=x.nbytes + weight.nbytes + out.nbytes, flops=2 * x.shape[0] * weight.numel())


KERNEL = Kernel(
    name="fused_linear",
    module="kernels_smoke.fusion.fused_linear",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=lambda inputs: {"out": reference.linear(**{name: inputs[name] for name in ARGUMENTS})},
    checks={"out": Near(floor=1e-3)},  # what is multiplied is rounded as the result is: sqrt(2) of its error
    cases=(
        case("257 x 512, SiLU", "quick", m=257, n=512, k=1024, activation="silu", bias=True),
        case("normed, 257 x 512", "quick", m=257, n=512, k=1024, normed=True, zero_centred=True),
        case("normed, 3 x 1000, ReLU", m=3, n=1000, k=520, normed=True, activation="relu", bias=True),
        case("17 x 300, GELU, not aligned", m=17, n=300, k=333, activation="gelu", bias=True),
        case(
            "normed, not aligned, strided",
            m=70,
            n=130,
            k=300,
            normed=True,
            x_stride=303,
            weight_stride=305,
            out_stride=133,
        ),
        case(
            "large tiles, float16", m=2100, n=4000, k=264, dtype=FP16, activation="gelu", vector_dtype=FP32, bias=True
        ),
        case("normed, values of 1e4", m=130, n=300, k=512, normed=True, scale=1e4),
        case("no row", m=0, n=64, k=64),
        big("40,000 rows", m=40_000, n=64, k=64, normed=True),
        here("float16, 40 x 70, GELU", "quick", m=40, n=70, k=72, dtype=FP16, activation="gelu", bias=True),
        here(
            "float16, normed, 40 x 70", m=40, n=70, k=72, dtype=FP16, normed=True, zero_centred=True, vector_dtype=FP32
        ),
        here(
            "float16, normed, 5 x 40, small values",
            m=5,
            n=40,
            k=50,
            dtype=FP16,
            normed=True,
            scale=0.1,
            bias=True,
            activation="silu",
        ),
        here(
            "float16, strided, ReLU",
            m=35,
            n=33,
            k=50,
            dtype=FP16,
            x_stride=56,
            weight_stride=64,
            out_stride=48,
            activation="relu",
        ),
    ),
    mutants=(
        Mutant("mean over the block", "tl.sum(squares, axis=1) / k", "tl.sum(squares, axis=1) / BLOCK_K"),
        Mutant("another epsilon", "axis=1) / k + epsilon", "axis=1) / k + 1e-6"),
        Mutant("squares of the last tile alone", "squares += values * values", "squares = values * values"),
        Mutant("weights not zero-centred before a product", "scale += 1.0", "scale += 0.0"),
        Mutant(
            "the activation before the bias",
            "if bias is not None:",
            "result = _activated(result, ACTIVATION)\n            if bias is not None:",
        ),
        Mutant(
            "bias of the first half",
            "offs_n = column + half * width + tl.arange(0, width)",
            "offs_n = column + tl.arange(0, width)",
        ),
    ),
    speeds=(
        Speed(
            "4096 x 12288, K 4096, SiLU",
            {"m": 4096, "n": 12288, "k": 4096, "activation": "silu", "bias": True},
            bar=1.2,
            work=work,
        ),
        Speed("normed, 4096 x 12288, K 4096", {"m": 4096, "n": 12288, "k": 4096, "normed": True}, bar=1.2, work=work),
        Speed(
            "normed, 16 x 12288, K 4096, SiLU",
            {"m": 16, "n": 12288, "k": 4096, "normed": True, "activation": "silu"},
            bar=1.5,
            work=work,
        ),
    ),
    matrix_instructions=True,
)
