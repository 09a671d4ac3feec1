"""What the suite runs for causal_conv1d, and what it expects."""

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.delta_net import reference
from kernels_smoke.suite.correctness.compare import Exact, Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Strides, Tensors, Work, big, case, here

ARGUMENTS = ("x", "weight", "bias", "states", "state_indices_in", "state_indices_out", "silu")
QWEN = 8192  # channels of Qwen 3.5: 16 query, 16 key and 32 value heads of 128
FAR = 2**30 + 64  # elements from one row to the next, so that the third row is beyond 2^31


def draw_arguments(
    draw: Draw,
    *,
    tokens: int,
    rows: int,
    channels: int,
    taps: int = 4,
    dtype: torch.dtype = BF16,
    weight_dtype: torch.dtype | None = None,
    bias: bool = True,
    silu: bool = True,
    x_stride: int = 0,
    out_stride: int = 0,
    states_strides: Strides = 0,
) -> dict[str, Any]:
    """Draw inputs of ``tokens`` tokens, weights and ``rows`` rows of states."""
    made = {
        "x": draw.normal(tokens, channels, dtype=dtype, row_stride=x_stride, name="x"),
        "weight": draw.normal(channels, taps, dtype=weight_dtype or dtype, scale=0.7, name="weight"),
        "bias": draw.normal(channels, dtype=weight_dtype or dtype, name="bias") if bias else None,
        "states": draw.normal(rows, taps - 1, channels, dtype=dtype, row_stride=states_strides, name="states"),
    }
    return {**made, "silu": silu, "out_stride": out_stride}


def draw_inputs(
    draw: Draw,
    *,
    lengths: tuple[int, ...],
    index_dtype: torch.dtype = torch.int32,
    batch: bool = True,
    initial: bool = True,
    final: bool = True,
    in_place: bool = True,
    missing: bool = False,
    **more: Any,
) -> Inputs:
    """Draw sequences of ``lengths`` and a row of states for each, shuffled, and as many more.

    ``batch``: with ``cu_seqlens``. ``initial``, ``final``: with rows to begin with, and to write. ``in_place``: these
    are the same. ``missing``: the first sequence begins with zeros, and the state of the last one is not kept. ``more``
    is that of ``draw_arguments``.
    """
    count = len(lengths)
    made = draw_arguments(draw, tokens=sum(lengths), rows=2 * count + 1, **more)
    bounds = torch.tensor([0, *itertools.accumulate(lengths)], dtype=index_dtype)
    order = draw.permutation(2 * count + 1, dtype=index_dtype, name="order")
    state_in, state_out = (draw.empty(count, dtype=index_dtype, name=f"state_indices_{way}") for way in ("in", "out"))
    if draw.device != "meta":
        state_in.copy_(order[:count])
        state_out.copy_(order[:count] if in_place else order[count : 2 * count])
        if missing:
            state_in[0], state_out[-1] = -1, -1
    return {
        **made,
        "cu_seqlens": draw.place(bounds, name="cu_seqlens") if batch else None,
        "state_indices_in": state_in if initial else None,
        "state_indices_out": state_out if final else None,
        "lengths": lengths,
    }


def expected(inputs: Inputs) -> Tensors:
    """The output, and all states afterwards, in float64."""
    states, taps = inputs["states"].double(), inputs["weight"].shape[1]
    rows_in, rows_out = (
        [-1] * len(inputs["lengths"]) if inputs[name] is None else inputs[name].tolist()
        for name in ("state_indices_in", "state_indices_out")
    )
    after, out = states.clone(), []
    options = {name: inputs[name] for name in ("weight", "bias", "silu")}
    for x, row, kept in zip(inputs["x"].split(inputs["lengths"]), rows_in, rows_out, strict=True):
        before = states[row] if row >= 0 else torch.zeros_like(states[0])
        made, held = reference.convolution(x, before=before, **options)
        out.append(made)
        if kept >= 0:
            after[kept] = held[len(held) - taps + 1 :]
    return {"out": torch.cat(out) if out else inputs["x"].double(), "states": after}


def outputs(inputs: Inputs) -> dict[str, Output]:
    """The result is like ``x``, with rows ``out_stride`` elements apart."""
    return {"out": (tuple(inputs["x"].shape), inputs["x"].dtype, inputs["out_stride"])}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    arguments = {name: inputs[name] for name in (*ARGUMENTS, "cu_seqlens")}
    return module.causal_conv1d(**arguments, out=outputs["out"])


@dataclass(frozen=True)
class Signed:
    """Exact, but for the sign of zero: what is copied is added to zero on its way."""

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return how many elements differ."""
        return Exact()(output + 0.0, reference + 0.0)


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Each token once in and once out, the states of a sequence or request in, and one out for each that is kept."""
    state = inputs["states"][0].nbytes
    read, written = inputs["state_indices_in"].numel(), inputs["state_indices_out"].numel()
    size = sum(tensor.nbytes for tensor in (inputs["x"], inputs["weight"], *outputs.values()))
    return Work(bytes=size + (read + written) * state)


TINY: Mapping[str, Any] = {"channels": 40, "dtype": FP16}
KERNEL = Kernel(
    name="causal_conv1d",
    module="kernels_smoke.delta_net.causal_conv1d",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks={"out": Rounded(), "states": Signed()},
    modifies=("states",),
    cases=(
        case("4 sequences of Qwen's", "quick", lengths=(700, 1, 0, 33), channels=QWEN, missing=True),
        case("one sequence", lengths=(513,), channels=1000, batch=False, initial=False),
        case(
            "3 taps, float32, strided",
            lengths=(65, 2, 40),
            channels=300,
            taps=3,
            dtype=FP32,
            x_stride=311,
            out_stride=307,
        ),
        case("2 taps, weights in float32", lengths=(3, 90), channels=130, taps=2, weight_dtype=FP32, in_place=False),
        case("states as torch lays them", lengths=(1, 2, 3, 4, 100), channels=256, states_strides=(1040, 260, 1)),
        case("no sequence", lengths=(), channels=64),
        big("300 sequences", lengths=(3, 0, 130) * 100, channels=1024),
        big("70,001 tokens", lengths=(70_001,), channels=512),
        case("offsets above 2^31", "deep", lengths=(3,), channels=1000, x_stride=FAR, out_stride=FAR),
        here("float16, 3 sequences", "quick", lengths=(19, 2, 34), missing=True, **TINY),
        here("float16, short and empty ones, 64-bit numbers", lengths=(1, 0, 2, 3, 5), index_dtype=torch.int64, **TINY),
        here(
            "float16, other rows, strided",
            lengths=(5, 0, 17),
            in_place=False,
            x_stride=45,
            out_stride=51,
            states_strides=(160, 44, 1),
            **TINY,
        ),
        here(
            "float32, 3 taps, no bias", lengths=(18, 1), taps=3, bias=False, channels=33, dtype=FP32, weight_dtype=FP32
        ),
        here("float16, 2 taps, no activation", lengths=(17, 4), taps=2, silu=False, **TINY),
        here("float16, one sequence, states not read", lengths=(20,), batch=False, initial=False, **TINY),
        here("float16, states not kept", lengths=(20, 3), final=False, **TINY),
    ),
    mutants=(
        Mutant("taps in the other order", "w3, w1 = tl.split(even)", "w1, w3 = tl.split(even)"),
        Mutant("reads the sequence before", "(at >= begin) & (at < end)", "(at >= 0) & (at < end)"),
        Mutant("nothing moves on", "x3, x2, x1 = x2, x1, x0", "x3, x2 = x2, x1"),
        Mutant("written behind the last token", "(start_row + step < count))", "(start_row + step < BLOCK_T))"),
        Mutant("states one tap off", "tap = at - begin + WIDTH - 1", "tap = tl.maximum(at - begin + WIDTH - 2, 0)"),
        Mutant("a short sequence forgets its state", "at < begin) & (tap >= 0)", "at < begin) & (tap < 0)"),
        Mutant(
            "written to the row that was read",
            "tl.load(state_indices_out + sequence)",
            "tl.load(state_indices_in + sequence)",
        ),
    ),
    speeds=(Speed("4 x 2048 x 8192", {"lengths": (2048,) * 4, "channels": QWEN, "bias": False}, bar=1.35, work=work),),
)
