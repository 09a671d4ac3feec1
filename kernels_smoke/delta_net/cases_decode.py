"""What the suite runs for gated_delta_rule_decode, and what it expects."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.delta_net import reference
from kernels_smoke.delta_net.cases_shared import (
    ARGUMENTS,
    COMMON_MUTANTS,
    FAINT,
    FAR,
    STRIDES,
    TINY,
    draw_heads,
    draw_state_rows,
    small,
)
from kernels_smoke.suite.correctness.compare import Exact, Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, Work, big, case, far


def draw_inputs(
    draw: Draw,
    *,
    requests: int,
    rows: int,
    steps: int = 1,
    heads: tuple[int, int] = (2, 4),
    depth: int = 128,
    width: int = 128,
    index_dtype: torch.dtype = torch.int32,
    states_stride: int = 0,
    out_stride: int = 0,
    scale: float = 1.0,
    strides: Mapping[str, tuple[int, ...]] = {},
    in_place: bool = False,
    missing: bool = False,
    projected: bool = False,
    **more: Any,
) -> Inputs:
    """Draw ``steps`` tokens for each request, with heads as in ``draw_heads``, and ``rows`` rows of states.

    The rows of requests are shuffled. ``in_place``: the state behind the first token replaces the one before
    it. ``missing``: the first request begins without a state, and the last state is not kept. ``states_stride``:
    elements from one row of states to the next. ``projected``: the gates are projections, with A_log and dt_bias.
    """
    drawn = draw_heads(draw, requests * steps, heads, depth=depth, width=width, scale=scale, strides=strides, **more)
    gates: dict[str, Any] = {"A_log": None, "dt_bias": None}
    if projected:
        for name, low, high in (("log_decay", -6.0, 3.0), ("beta", -4.0, 4.0)):
            gates[name] = draw.uniform(*drawn[name].shape, low=low, high=high, dtype=drawn[name].dtype, name=name)
        for name, low, high in (("A_log", 0.0, 1.5), ("dt_bias", -4.0, 0.0)):
            gates[name] = draw.uniform(heads[1], low=low, high=high, dtype=FP32, name=name)
    size = heads[1] * depth * width
    states = draw.normal(rows, size, dtype=FP32, scale=scale, row_stride=states_stride, name="states")
    indices = draw_state_rows(draw, rows, requests, steps, index_dtype=index_dtype, in_place=in_place, missing=missing)
    return {
        **drawn,
        **gates,
        "states": states,
        **indices,
        "row": (heads[1], depth, width),
        "out_stride": strides.get("out", out_stride),
    }


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.gated_delta_rule_decode(
        **{name: inputs[name] for name in (*ARGUMENTS, "A_log", "dt_bias")},
        states=inputs["states"].unflatten(1, inputs["row"]),
        state_indices_in=inputs["state_indices_in"],
        state_indices_out=inputs["state_indices_out"],
        out=outputs["out"],
    )


def expected(inputs: Inputs) -> Tensors:
    """The output, and all states afterwards, in float64."""
    arguments = {name: inputs[name] for name in ARGUMENTS}
    if inputs["A_log"] is not None:
        projected = (inputs[name] for name in ("log_decay", "beta", "A_log", "dt_bias"))
        arguments["log_decay"], arguments["beta"] = reference.gates(*projected)
    out, states = reference.decode(
        **arguments,
        states=inputs["states"].unflatten(1, inputs["row"]),
        rows_in=inputs["state_indices_in"].tolist(),
        rows_out=inputs["state_indices_out"].tolist(),
    )
    return {"out": out, "states": states.flatten(1)}


@dataclass(frozen=True)
class States:
    """Rows of states that were written are near the reference, all others have the bits that they had.

    A row of the reference that was not written is float32 in every element; one that was computed is not.
    """

    near: Near

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return the error of the rows that were written, or what is wrong with the others."""
        kept = (reference == reference.float().double()).all(dim=1)
        untouched = Exact()(output[kept], reference[kept])
        if untouched["message"]:
            return {**untouched, "message": f"rows that must stay as they are: {untouched['message']}"}
        return self.near(output[~kept], reference[~kept])


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Each request's state in, a state out for each token; the heads and gates once."""
    state = inputs["states"][0].nbytes
    requests, steps = inputs["state_indices_out"].shape
    read = [inputs[name] for name in ("q", "k", "v", "log_decay", "beta")]
    size = sum(tensor.nbytes for tensor in (*read, *outputs.values()))
    return Work(bytes=size + requests * (1 + steps) * state)


QWEN = {"heads": (16, 32), "packed": True, "in_place": True}

KERNEL = Kernel(
    name="gated_delta_rule_decode",
    module="kernels_smoke.delta_net.gated_delta_rule_decode",
    inputs=draw_inputs,
    outputs=lambda inputs: {"out": (tuple(inputs["v"].shape), inputs["v"].dtype, inputs["out_stride"])},
    launch=launch,
    reference=expected,
    checks={"out": Near(faint=FAINT), "states": States(Near())},
    modifies=("states",),
    cases=(
        case("9 requests of 16 and 32 heads", "quick", requests=9, rows=11, **QWEN),
        case("4 drafts to verify, in their own rows", requests=5, rows=33, steps=4, heads=(16, 32), missing=True),
        case("the working row, and 3 drafts", requests=5, rows=33, steps=4, in_place=True, missing=True),
        case("no request", requests=0, rows=3),
        case("one request", requests=1, rows=1, in_place=True),
        case("many requests", requests=100, rows=100, in_place=True),
        case("float32", requests=3, rows=9, steps=2, dtype=FP32),
        case("not normalized, 64-bit numbers", requests=3, rows=9, normalize=False, index_dtype=torch.int64),
        case(
            "strided heads and states", requests=3, rows=9, row_stride=136, out_stride=144, states_stride=4 * 2**14 + 8
        ),
        case("depth 64, width 32", requests=7, rows=14, depth=64, width=32),
        case("depth 16, width 128", requests=7, rows=14, depth=16),
        big("4,100 requests", requests=4100, rows=4100, in_place=True),
        big("rows from 1,500 on", requests=700, rows=1600, heads=(16, 32), packed=True),
        case("values of 1e4", requests=7, rows=14, scale=1e4),
        case("all forgotten", requests=7, rows=14, forgetting=100.0),
        case("gates in bfloat16", requests=7, rows=14, gate_dtype=BF16, gate_stride=9),
        case("begun again here and there, its own scale", requests=20, rows=40, extremes=True, query_scale=0.7),
        far("states above 2^31", requests=1, rows=3, steps=2, states_stride=FAR),
        far("states above 2^31, each read and written", requests=3, rows=3, in_place=True, states_stride=FAR),
        case("gates projected", requests=20, rows=40, heads=(16, 32), projected=True),
        *(
            case(
                f"sweep: {requests} requests of {steps}",
                "deep",
                requests=requests,
                rows=requests * (steps + 1) + 2,
                steps=steps,
                heads=(16, 32),
            )
            for requests in (1, 8, 33)
            for steps in (1, 2, 8)
        ),
        small("float16, in place", "quick", requests=3, rows=5, in_place=True, **TINY),
        small("float16, 3 drafts, one missing", requests=2, rows=9, steps=3, missing=True, **TINY),
        small("float32, the working row and a draft", requests=3, rows=8, steps=2, dtype=FP32, in_place=True, **TINY),
        small(
            "float32, not normalized, strided",
            requests=2,
            rows=5,
            heads=(1, 3),
            depth=16,
            width=32,
            dtype=FP32,
            normalize=False,
            row_stride=48,
            states_stride=1600,
            gate_stride=5,
            query_scale=0.7,
            index_dtype=torch.int64,
        ),
        small("float32, begun again here and there", requests=4, rows=12, steps=2, dtype=FP32, extremes=True, **TINY),
        small("float32, values of 1e4", requests=2, rows=4, dtype=FP32, scale=1e4, packed=True, **TINY),
        small(
            "float16, gates too, their own strides",
            requests=2,
            rows=6,
            steps=2,
            gate_dtype=FP16,
            strides=STRIDES,
            **TINY,
        ),
        small("float16, norms near 1e-3", requests=2, rows=4, heads=(1, 2), key_scale=1.8e-4, **TINY),
        small("float32, gates projected", requests=2, rows=6, steps=2, dtype=FP32, projected=True, **TINY),
        small("float16, no request", requests=0, rows=2, **TINY),
    ),
    mutants=(
        Mutant("not decayed", "state *= decay", "state *= 1.0 + 0.0 * decay"),
        Mutant("prediction not subtracted", "(b_v - tl.sum(state * b_k[:, None], axis=0))", "b_v"),
        Mutant("output of the state before", " + delta * tl.sum(b_k * b_q, axis=0)", ""),
        Mutant("beta omitted from the state", "b_k[:, None] * delta[None", "b_k[:, None] * (delta / b_beta)[None"),
        Mutant("output not scaled", "(b_o * scale)", "b_o"),
        Mutant("keys of another head", "head // GROUP * k_head_stride", "head % GROUP * k_head_stride"),
        Mutant("decays of another token", "token * log_decay_stride", "token * VALUE_HEADS"),
        Mutant("beta of another token", "token * beta_stride", "token * VALUE_HEADS"),
        *COMMON_MUTANTS,
        Mutant("a norm of zero", "tl.sum(b_k * b_k, axis=0) + epsilon", "tl.sum(b_k * b_k, axis=0)"),
        Mutant(
            "k at the distances of q",
            "k_stride=k.stride(0),\n                k_head_stride=k.stride(1)",
            "k_stride=q.stride(0),\n                k_head_stride=q.stride(1)",
        ),
        Mutant("tokens of the result without gaps", "token * out_stride", "token * VALUE_HEADS * out_head_stride"),
        Mutant("gates projected, beta as it is", "b_beta = tl.sigmoid(b_beta)", "b_beta = b_beta * 1.0"),
        Mutant("the decay of another head's parameters", "tl.load(A_log + head)", "tl.load(A_log)"),
        Mutant("queries not normalized", "b_q *= tl.rsqrt", "b_q *= 1.0 + 0.0 * tl.rsqrt"),
        Mutant(
            "written to the row that was read",
            "tl.load(state_indices_out + token)",
            "tl.load(state_indices_in + request)",
        ),
        Mutant(
            "read from the row of the next",
            "tl.load(state_indices_in + request)",
            "tl.load(state_indices_out + request)",
        ),
        Mutant(
            "rows one behind another",
            "row * states_stride + within, state,",
            "row * VALUE_HEADS * K * V + within, state,",
        ),
        Mutant(
            "what is not kept goes to row 0",
            "row * states_stride + within, state, mask=row >= 0",
            "tl.maximum(row, 0) * states_stride + within, state",
        ),
        Mutant(
            "what begins at zero begins at row 0",
            "row * states_stride + within, mask=row >= 0",
            "tl.maximum(row, 0) * states_stride + within, mask=row >= -1",
        ),
    ),
    speeds=(
        Speed("64 requests", {"requests": 64, "rows": 64, **QWEN}, bar=1.2, work=work),
        Speed("256 requests", {"requests": 256, "rows": 256, **QWEN}, bar=1.2, work=work),
    ),
)
