"""What the suite runs for muon_step, and what it expects."""

from types import ModuleType

import torch

from kernels_smoke.muon import reference
from kernels_smoke.muon.cases_newton_schulz import case, small
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Tensors

OPTIONS = ("learning_rate", "decay", "nesterov", "weight_decay")


def draw_inputs(
    draw: Draw,
    *,
    shape: tuple[int, ...],
    dtype: torch.dtype = FP32,
    iterate: torch.dtype = BF16,
    steps: int = 3,
    learning_rate: float = 0.5,
    decay: float = 0.9,
    nesterov: bool = True,
    weight_decay: float = 0.1,
    strides: tuple[int, int, int] = (0, 0, 0),
) -> Inputs:
    """Draw weight and momentum [..., m, n], and a gradient for each of ``steps`` steps.

    Their rows are ``strides`` elements apart: the weight's, the momentum's and the gradients'.
    Weights are as large as the steps are, so that the error of a step is not lost in them.
    """
    size = 0.5 * learning_rate / max(shape[-2:]) ** 0.5
    weight = draw.normal(*shape, dtype=dtype, scale=size, row_stride=strides[0], name="weight")
    momentum = draw.normal(*shape, dtype=dtype, scale=0.5, row_stride=strides[1], name="momentum")
    gradients = draw.normal(steps, *shape, dtype=dtype, row_stride=strides[2], name="gradients")
    options = dict(zip(OPTIONS, (learning_rate, decay, nesterov, weight_decay), strict=True))
    return {"weight": weight, "momentum": momentum, "gradients": gradients, "iterate": iterate, **options}


def launch(module: ModuleType, inputs: Inputs, _outputs: Tensors) -> object:
    """A step for each gradient; what the last call returns."""
    options = {name: inputs[name] for name in OPTIONS}
    made = None
    for gradient in inputs["gradients"]:
        made = module.muon_step(inputs["weight"], gradient, inputs["momentum"], dtype=inputs["iterate"], **options)
    return made


def expected(inputs: Inputs) -> Tensors:
    """The same steps in float64."""
    weight, momentum = inputs["weight"], inputs["momentum"]
    for gradient in inputs["gradients"]:
        options = {name: inputs[name] for name in OPTIONS}
        weight, momentum = reference.muon_step(weight, gradient, momentum, **options)
    return {"weight": weight, "momentum": momentum}


KERNEL = Kernel(
    name="muon_step",
    module="kernels_smoke.muon.muon_step",
    inputs=draw_inputs,
    outputs=lambda _inputs: {},
    launch=launch,
    reference=expected,
    modifies=("weight", "momentum"),
    # That of the iteration: bfloat16 weights are stepped by it in bfloat16, float32 ones in float16 (see the cases).
    checks={"weight": Near(bfloat16=1.9e-2, float32=6e-3), "momentum": Near(bfloat16=5e-3)},
    cases=(
        case("256 x 640, bfloat16", 256, 640, level="quick", dtype=BF16),
        case("256 x 16,384, bfloat16", 256, 16_384, dtype=BF16, steps=1, checked=False),
        case("640 x 256, float32 by float16", 640, 256, iterate=FP16),
        case("4 of 300 x 128, bfloat16", 4, 300, 128, dtype=BF16),
        case("300 x 128, each at its own stride", 300, 128, dtype=BF16, strides=(136, 144, 152)),
        small("33 x 20, float32 by float16", 33, 20, dtype=FP32, iterate=FP16, steps=2),
        small("20 x 33, no Nesterov", 20, 33, dtype=FP32, iterate=FP16, nesterov=False, steps=1),
        small("2 of 5 x 18", 2, 5, 18, level="quick", dtype=FP32, iterate=FP16, steps=1),
    ),
    mutants=(
        Mutant("upwards", "- length * update", "+ length * update"),
        Mutant("tall matrices not scaled", "max(1.0, rows / columns) ** 0.5", "1.0"),
        Mutant("wide matrices scaled, too", "max(1.0, rows / columns)", "(rows / columns)"),
        Mutant("momentum never fades", "(1.0 - decay) * (g - before)", "(1.0 - decay) * g"),
        Mutant("no Nesterov", "NESTEROV=nesterov", "NESTEROV=False"),
        Mutant("always Nesterov", "NESTEROV=nesterov", "NESTEROV=True"),
        Mutant("no weight decay", "learning_rate * weight_decay", "0.0 * weight_decay"),
        Mutant("the gradient as it is", "newton_schulz(direction, out=out)", "out.copy_(direction)"),
    ),
)
