"""What the suite runs for delta_rule_gates, and what it expects."""

import torch

from kernels_smoke.delta_net import reference
from kernels_smoke.suite.correctness.compare import Relative
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, here

ARGUMENTS = ("a", "b", "A_log", "dt_bias")
LEAST = -75.0  # with the bias, exp of it is a normal number in float32
FAR = 2**30 + 64  # elements from one row to the next, so that the third row is beyond 2^31


def draw_inputs(
    draw: Draw,
    *,
    tokens: int,
    heads: int = 32,
    dtype: torch.dtype = BF16,
    parameters: torch.dtype = FP32,
    a_stride: int = 0,
    b_stride: int = 0,
    out_strides: tuple[int, int] = (0, 0),
    largest: float = 12.0,
) -> Inputs:
    """Draw a and b [tokens, heads] from minus ``largest`` (``LEAST`` at least) to plus ``largest``, and parameters."""
    a, b = (
        draw.uniform(tokens, heads, low=max(-largest, LEAST), high=largest, dtype=dtype, row_stride=stride, name=name)
        for name, stride in (("a", a_stride), ("b", b_stride))
    )
    A_log = draw.uniform(heads, low=0.0, high=2.8, dtype=parameters, name="A_log")  # noqa: N806  # the paper's name
    dt_bias = draw.uniform(heads, low=-7.0, high=1.0, dtype=parameters, name="dt_bias")
    return {"a": a, "b": b, "A_log": A_log, "dt_bias": dt_bias, "out_strides": out_strides}


def outputs(inputs: Inputs) -> dict[str, Output]:
    """Both gates, in float32."""
    shape = tuple(inputs["a"].shape)
    return {
        name: (shape, FP32, stride) for name, stride in zip(("log_decay", "beta"), inputs["out_strides"], strict=True)
    }


def expected(inputs: Inputs) -> Tensors:
    """Both gates in float64."""
    log_decay, beta = reference.gates(*(inputs[name] for name in ARGUMENTS))
    return {"log_decay": log_decay, "beta": beta}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Two projections in, two gates out."""
    tensors = (*(inputs[name] for name in ARGUMENTS), *outputs.values())
    return Work(bytes=sum(tensor.nbytes for tensor in tensors))


KERNEL = Kernel(
    name="delta_rule_gates",
    module="kernels_smoke.delta_net.delta_rule_gates",
    inputs=draw_inputs,
    outputs=outputs,
    launch=lambda module, inputs, outputs: module.delta_rule_gates(
        **{name: inputs[name] for name in ARGUMENTS}, out=(outputs["log_decay"], outputs["beta"])
    ),
    reference=expected,
    # 2^-24 |x| from the argument of exp, and as much from a + dt_bias, at |x| up to 101; then three roundings.
    checks={"log_decay": Relative(1.5e-5), "beta": Relative(1.5e-5)},
    cases=(
        case("32 heads", "quick", tokens=1000),
        case("5 heads, strided", tokens=333, heads=5, a_stride=7, b_stride=9, out_strides=(6, 11)),
        case("300 heads", tokens=17, heads=300),
        case("no token", tokens=0),
        big("140,000 tokens", tokens=140_000),
        case("offsets above 2^31", "deep", tokens=3, a_stride=FAR, b_stride=FAR),
        here("float32, 5 heads, strided", "quick", tokens=70, heads=5, dtype=FP32, a_stride=7, out_strides=(0, 6)),
        here(
            "float16, parameters too, other strides",
            tokens=33,
            heads=6,
            dtype=FP16,
            parameters=FP16,
            b_stride=9,
            out_strides=(8, 0),
        ),
        here("float32, beyond exp's range", tokens=40, heads=8, dtype=FP32, largest=100.0),
    ),
    mutants=(
        Mutant(
            "softplus of exp alone", "tl.maximum(x, 0.0) + 2.0 * s * (1.0 + square * series)", "tl.log(1.0 + tl.exp(x))"
        ),
        Mutant("no decay for what is large", "tl.maximum(x, 0.0) + 2.0", "2.0"),
        Mutant("a short series", "1.0 / 3.0 + square * series", "1.0 / 3.0"),
        Mutant("without the bias", "a.to(tl.float32) + dt_bias.to(tl.float32)", "a.to(tl.float32)"),
        Mutant("b at the distances of a", "b + o_t * b_stride", "b + o_t * a_stride"),
        Mutant("beta at the distances of decays", "beta + o_t * beta_stride", "beta + o_t * log_decay_stride"),
    ),
    speeds=(Speed("131,072 x 32", {"tokens": 131_072}, bar=1.4, work=work),),
)
