"""What the suite runs for the known miscompiles, and what it expects."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.miscompiles import reference
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Case, Inputs, Kernel, Mutant, Tensors, big, case, here


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too: float16."""
    return here(name, level, **{"dtype": FP16, **shape})


def draw_matrices(
    draw: Draw, *, m: int, n: int, k: int, dtype: torch.dtype = BF16, scale: float = 1.0, whole: bool = False
) -> Inputs:
    """Draw a and c [m, k], b and d [k, n]: the two products are of one size, so that neither hides the other.

    ``whole``: of whole numbers from -2 to 2, whose sums float32 holds: tensor cores, which round each partial sum
    towards zero, would be some 4e-5 off after 16,384 others.
    """
    shapes = {"a": (m, k), "b": (k, n), "c": (m, k), "d": (k, n)}
    if whole:
        drawn = {name: draw.integers(*shape, low=-2, high=3, dtype=FP32) for name, shape in shapes.items()}
        return {name: draw.place(values.to(dtype), name=name) for name, values in drawn.items()}
    return {name: draw.normal(*shape, dtype=dtype, scale=scale, name=name) for name, shape in shapes.items()}


def draw_recurrence(
    draw: Draw,
    *,
    heads: int,
    tokens: int,
    width: int,
    depth: int = 128,
    dtype: torch.dtype = BF16,
    delta: bool = False,
    warps: int = 4,
) -> Inputs:
    """Draw q, k, w [heads, tokens, depth], v [heads, tokens, width] and decay [heads, chunks of 64 tokens].

    The scale of k and w keeps the recurrence from growing: their product over 64 tokens has a norm below 1.
    """
    keys = {
        name: draw.normal(heads, tokens, depth, dtype=dtype, scale=scale, name=name)
        for name, scale in (("q", 1.0), ("k", 0.05), *([("w", 0.05)] if delta else []))
    }
    v = draw.normal(heads, tokens, width, dtype=dtype, name="v")
    decay = draw.uniform(heads, -(-tokens // 64), low=0.5, high=0.95, dtype=FP32, name="decay")
    return {**keys, "v": v, "decay": decay, "warps": warps}


def readings_and_state(inputs: Inputs) -> Mapping[str, tuple[tuple[int, ...], torch.dtype]]:
    """What was read for each token, and the state in the end."""
    (heads, _, depth), width = inputs["q"].shape, inputs["v"].shape[2]
    return {"readings": (tuple(inputs["v"].shape), FP32), "state": ((heads, depth, width), FP32)}


def launch_decayed_accumulator(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.decayed_accumulator(**inputs, out=(outputs["readings"], outputs["state"]))


def expected_of_recurrence(inputs: Inputs) -> Tensors:
    """Both results in float64."""
    tensors = {name: value for name, value in inputs.items() if name != "warps"}
    readings, state = reference.decayed_accumulator(**tensors)
    return {"readings": readings, "state": state}


CHAINED_DOTS = Kernel(
    name="chained_dots",
    module="kernels_smoke.miscompiles.chained_dots",
    inputs=draw_matrices,
    outputs=lambda inputs: {"out": ((inputs["a"].shape[0], inputs["b"].shape[1]), FP32)},
    launch=lambda module, inputs, outputs: module.chained_dots(**inputs, out=outputs["out"]),
    reference=lambda inputs: {"out": reference.chained_dots(**inputs)},
    checks={"out": Near(float32=1e-5)},  # sums of exact products, which tensor cores round towards zero
    cases=(
        case("256 x 256, K 512", "quick", m=256, n=256, k=512),
        case("one step", m=64, n=64, k=64),
        big("12,032 x 12,032", m=12_032, n=12_032, k=64),
        big("whole numbers, K 16,384", m=64, n=64, k=16_384, whole=True),
        case("odd widths", m=127, n=300, k=1025),
        case("one element", m=1, n=1, k=1),
        case("no row", m=0, n=64, k=64),
        case("values of 1e4", m=128, n=128, k=256, scale=1e4),
        small("float16, 40 x 24, K 64", "quick", m=40, n=24, k=64),
        small("float16, odd widths", m=17, n=33, k=37),
    ),
    mutants=(
        Mutant("only the last first product", "tl.dot(tile_a, tile_b, acc)", "tl.dot(tile_a, tile_b)"),
        Mutant("only the second product", "tl.dot(tile_c, tile_d, acc)", "tl.dot(tile_c, tile_d)"),
        Mutant("the first operand twice", "tl.dot(tile_c, tile_d, ", "tl.dot(tile_a, tile_d, "),
        Mutant("stored beyond the last column", "acc, mask=inside", "acc, mask=(offs_m < m)[:, None]"),
        Mutant("rows and columns exchanged", "tl.program_id(0) * BLOCK", "tl.program_id(1) * BLOCK"),
        Mutant("K not masked", "mask=inside, other=0.0", "mask=(offs_m < rows)[:, None], other=0.0"),
    ),
    matrix_instructions=True,
)

DECAYED_ACCUMULATOR = Kernel(
    name="decayed_accumulator",
    module="kernels_smoke.miscompiles.decayed_accumulator",
    inputs=draw_recurrence,
    outputs=readings_and_state,
    launch=launch_decayed_accumulator,
    reference=expected_of_recurrence,
    # A sum that is rounded the other way, where a product reads the state, is one step of its dtype off; few are. The
    # greatest error in 1,141 runs on an H200 was 4.4e-4, and that of a row 2.0e-3.
    checks={"readings": Near(float32=1e-3), "state": Near(float32=1e-3)},
    cases=(
        *(
            case(
                f"{'delta rule' if delta else 'decay alone'}, {warps} warps",
                "quick" if warps == 4 else "full",
                heads=64,
                tokens=1024,
                width=128,
                delta=delta,
                warps=warps,
            )
            for delta in (False, True)
            for warps in (4, 8)
        ),
        case("depth 64, 300 tokens, width 65", heads=3, tokens=300, width=65, depth=64, delta=True),
        big("9,216 tokens", heads=64, tokens=9216, width=128),
        case("one token", heads=1, tokens=1, width=1, depth=16, delta=True),
        case("no token", heads=2, tokens=0, width=32, delta=True),
        case("no head", heads=0, tokens=64, width=32),
        small("float16, decay alone", "quick", heads=2, tokens=150, width=20, depth=32),
        small("float16, delta rule", heads=2, tokens=150, width=40, depth=16, delta=True),
    ),
    mutants=(
        Mutant("not decayed", "state *= tl.load", "state *= 1.0 + 0.0 * tl.load"),
        Mutant("decay of another head", "decay + head * chunks + chunk", "decay + head + chunk"),
        Mutant("read after the decay", "b_s = state.to(", "b_s = (state * tl.load(decay + head * chunks + chunk)).to("),
        Mutant("the state started again", "tl.dot(b_k.T, b_v, state)", "tl.dot(b_k.T, b_v)"),
        Mutant("correction added", "b_v - tl.dot(b_w, b_s)", "b_v + tl.dot(b_w, b_s)"),
        Mutant("correction from the keys", "tl.dot(b_w, b_s)", "tl.dot(b_k, b_s)"),
        Mutant(
            "tokens of w not masked",
            "tl.load(w + keys, mask=(row < tokens)[:, None]",
            "tl.load(w + keys, mask=(row >= 0)[:, None]",
        ),
        Mutant("columns not masked", "mask=(o_v < width)[None, :]", "mask=(o_v >= 0)[None, :]"),
        Mutant("one chunk too few", "for chunk in range(chunks)", "for chunk in range(chunks - 1)"),
    ),
    matrix_instructions=True,
)

KERNELS = {kernel.name: kernel for kernel in (CHAINED_DOTS, DECAYED_ACCUMULATOR)}
