"""What the suite runs for causal_conv1d_update, and what it expects."""

from types import ModuleType
from typing import Any

import torch

from kernels_smoke.delta_net import reference
from kernels_smoke.delta_net.cases_convolution import ARGUMENTS, FAR, QWEN, TINY, Signed, draw_arguments, outputs, work
from kernels_smoke.delta_net.cases_shared import draw_state_rows
from kernels_smoke.suite.correctness.compare import Rounded
from kernels_smoke.suite.correctness.draw import FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, big, case, here


def draw_inputs(
    draw: Draw,
    *,
    requests: int,
    steps: int = 1,
    index_dtype: torch.dtype = torch.int32,
    in_place: bool = False,
    missing: bool = False,
    **more: Any,
) -> Inputs:
    """Draw ``steps`` tokens for each request and rows of states, shuffled: one to begin with, one for each token.

    ``in_place``: the state behind the first token replaces the one before it. ``missing``: the first request begins
    with zeros, and the last state is not kept. ``more`` is that of ``draw_arguments``.
    """
    rows = requests * (1 + steps - in_place) + 1
    made = draw_arguments(draw, tokens=requests * steps, rows=rows, **more)
    return {
        **made,
        **draw_state_rows(draw, rows, requests, steps, index_dtype=index_dtype, in_place=in_place, missing=missing),
    }


def expected(inputs: Inputs) -> Tensors:
    """The output, and all states afterwards, in float64; all requests at once, a token of each at a time."""
    states, taps = inputs["states"].double(), inputs["weight"].shape[1]
    state_in, state_out = inputs["state_indices_in"].long(), inputs["state_indices_out"].long()
    requests, steps = state_out.shape
    before = torch.where((state_in >= 0)[:, None, None], states[state_in.clamp(min=0)], 0.0)
    channels = inputs["x"].shape[1]
    x = inputs["x"].double().reshape(requests, steps, channels)
    held = torch.cat((before, x), dim=1).transpose(0, 1)  # [taps - 1 + steps, requests, channels]
    out, _ = reference.convolution(
        held[taps - 1 :].flatten(1),
        weight=inputs["weight"].repeat(requests, 1),
        bias=None if inputs["bias"] is None else inputs["bias"].repeat(requests),
        before=held[: taps - 1].flatten(1),
        silu=inputs["silu"],
    )
    for step in range(steps):
        kept = state_out[:, step]
        states[kept[kept >= 0]] = held[step + 1 : step + taps].transpose(0, 1)[kept >= 0]
    return {"out": out.reshape(steps, requests, channels).transpose(0, 1).flatten(0, 1), "states": states}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.causal_conv1d_update(**{name: inputs[name] for name in ARGUMENTS}, out=outputs["out"])


KERNEL = Kernel(
    name="causal_conv1d_update",
    module="kernels_smoke.delta_net.causal_conv1d_update",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks={"out": Rounded(), "states": Signed()},
    modifies=("states",),
    cases=(
        case("9 requests of Qwen's", "quick", requests=9, channels=QWEN, in_place=True),
        case("4 drafts, in their own rows", requests=5, steps=4, channels=QWEN, missing=True),
        case("the working row, and 3 drafts", requests=5, steps=4, channels=3000, in_place=True, missing=True),
        case("3 taps, float32, strided", requests=7, channels=300, taps=3, dtype=FP32, x_stride=311, out_stride=307),
        case("2 taps, weights in float32", requests=7, steps=2, channels=130, taps=2, weight_dtype=FP32),
        case("no request", requests=0, channels=64),
        big("40,000 requests", requests=40_000, channels=1024, in_place=True),
        case("states above 2^31", "deep", requests=1, channels=1000, states_strides=(FAR, 1000, 1)),
        here("float16, in place", "quick", requests=3, in_place=True, **TINY),
        here("float16, 5 drafts, one missing", requests=2, steps=5, missing=True, **TINY),
        here(
            "float32, 3 taps, strided, 64-bit numbers",
            requests=3,
            steps=2,
            taps=3,
            channels=33,
            dtype=FP32,
            x_stride=45,
            out_stride=51,
            states_strides=(120, 44, 1),
            index_dtype=torch.int64,
        ),
        here("float16, 2 taps, no bias, no activation", requests=3, taps=2, bias=False, silu=False, **TINY),
    ),
    mutants=(
        Mutant("the oldest input omitted", "start + x3.to(tl.float32) * w3", "start"),
        Mutant("nothing moves on", "x3, x2, x1 = x2, x1, x0", "x3, x2 = x2, x1"),
        Mutant("the state before the token", "x3, x2, x1 = x2, x1, x0\n        o_kept", "o_kept"),
        Mutant(
            "what begins with zeros begins with the last row",
            "in_c & (row >= 0), other",
            "in_c, other",
            "kernels_smoke.delta_net.causal_conv1d",
        ),
        Mutant("what is not kept goes to the last row", "in_c & (kept >= 0)", "in_c"),
        Mutant("the first draft for all", "token += 1", "token += 0"),
        Mutant(
            "all drafts in one row",
            "tl.load(state_indices_out + token, mask",
            "tl.load(state_indices_out + request, mask",
        ),
        Mutant("taps without gaps", "(WIDTH - 2) * states_tap_stride, x1", "(WIDTH - 2) * channels, x1"),
    ),
    speeds=(
        Speed(
            "512 requests", {"requests": 512, "channels": QWEN, "in_place": True, "bias": False}, bar=1.37, work=work
        ),
    ),
)
