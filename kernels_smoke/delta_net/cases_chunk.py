"""What the suite runs for gated_delta_rule_chunk, and what it expects."""

from collections.abc import Mapping
from itertools import accumulate
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.delta_net import reference
from kernels_smoke.delta_net.cases_shared import ARGUMENTS, COMMON_MUTANTS, FAINT, FAR, STRIDES, TINY, draw_heads, small
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, far

CHUNK = 64  # tokens, in the counting of operations
MANY = 2000  # tokens, from which the reference goes by chunks
MOST_DECAY = -100.0  # that it can
CARRY = "kernels_smoke.delta_net.chunk_kernels"
WY = "kernels_smoke.delta_net.wy_representation"


def draw_inputs(
    draw: Draw,
    *,
    lengths: tuple[int, ...],
    heads: tuple[int, int] = (2, 4),
    depth: int = 128,
    width: int = 128,
    out_stride: int = 0,
    scale: float = 1.0,
    strides: Mapping[str, tuple[int, ...]] = {},
    batch: bool = True,
    initial: bool = True,
    in_place: bool = False,
    **more: Any,
) -> Inputs:
    """Draw sequences of ``lengths`` tokens one behind another, with heads as in ``draw_heads``, which takes ``more``.

    ``batch``: pass where each begins (without it, there is one). ``initial``: pass initial states; ``in_place``: into
    which the final states are written.
    """
    drawn = draw_heads(draw, sum(lengths), heads, depth=depth, width=width, scale=scale, strides=strides, **more)
    bounds = torch.tensor([0, *accumulate(lengths)], dtype=torch.int32)
    states = (len(lengths), heads[1], depth, width)
    return {
        **drawn,
        "cu_seqlens": draw.place(bounds, name="cu_seqlens") if batch else None,
        "initial_state": draw.normal(*states, dtype=FP32, scale=scale, name="initial_state") if initial else None,
        "states": states,
        "lengths": lengths,
        "out_stride": strides.get("out", out_stride),
        "in_place": in_place,
    }


def state_of(inputs: Inputs) -> str:
    """The name of the final states, which are float32 and as exact as the dtype of what they are made of."""
    return "final_state" if inputs["q"].dtype == BF16 else "final_state, float16"


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """An output like ``v``, and the final states."""
    v = inputs["v"]
    return {"out": (tuple(v.shape), v.dtype, inputs["out_stride"]), state_of(inputs): (inputs["states"], FP32)}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function; with ``in_place``, the final states replace the initial ones."""
    initial, final = inputs["initial_state"], outputs[state_of(inputs)]
    if inputs["in_place"]:
        initial = final.copy_(initial)
    arguments = {name: inputs[name] for name in (*ARGUMENTS, "cu_seqlens")}
    return module.gated_delta_rule_chunk(**arguments, initial_state=initial, final_state=final, out=outputs["out"])


def expected(inputs: Inputs) -> Tensors:
    """Output and final states in float64: token by token, or by chunks where that would take seconds."""
    tokens, log_decay = len(inputs["v"]), inputs["log_decay"]
    prefill = reference.prefill_by_chunks if tokens > MANY and log_decay.min() > MOST_DECAY else reference.prefill
    out, states = prefill(
        **{name: inputs[name] for name in ARGUMENTS},
        bounds=[0, *accumulate(inputs["lengths"])],
        initial_state=inputs["initial_state"],
    )
    return {"out": out, state_of(inputs): states}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Everything once through memory, and the products of README.md by chunks of 64 tokens.

    For each chunk and value head: three products with the state, two of [64, 64] with [64, width]; for each key head
    the products of keys, and of queries, with keys.
    """
    q, v = inputs["q"], inputs["v"]
    (tokens, key_heads, depth), (_, value_heads, width) = q.shape, v.shape
    read = [inputs[name] for name in ("q", "k", "v", "log_decay", "beta")]
    read += [] if inputs["initial_state"] is None else [inputs["initial_state"]]
    each_value = 2 * value_heads * width * (3 * depth + 2 * CHUNK)
    each_key = 2 * key_heads * depth * 2 * CHUNK
    size = sum(tensor.nbytes for tensor in (*read, *outputs.values()))
    return Work(bytes=size, flops=tokens * (each_value + each_key))


QWEN = {"heads": (16, 32), "batch": False, "initial": False, "packed": True}

KERNEL = Kernel(
    name="gated_delta_rule_chunk",
    module="kernels_smoke.delta_net.gated_delta_rule_chunk",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    # What is multiplied is rounded to 16 bits, in a chain of five products for each chunk.
    checks={
        "out": Near(bfloat16=8e-3, float16=1.5e-3, faint=FAINT),
        "final_state": Near(float32=8e-3),
        "final_state, float16": Near(float32=2e-3),
    },
    cases=(
        case("five sequences", "quick", lengths=(200, 1, 63, 64, 65)),
        case("one sequence, 16 and 32 heads", lengths=(1000,), **QWEN),
        case("the same in a batch, with initial states", lengths=(130, 0, 0, 500, 1), heads=(16, 32), packed=True),
        case("16 and 32 heads, float16", "deep", lengths=(300,), **{**QWEN, "dtype": FP16}),
        big("sequences of 4,500 and 9,001, with initial states", lengths=(4500, 9001)),
        big("40,001 tokens", lengths=(40_001,), **QWEN),
        big("530 sequences", lengths=tuple(number % 37 for number in range(530)), heads=(16, 32), packed=True),
        case("no token", lengths=(0, 0)),
        case("no sequence", lengths=()),
        case("one token", "deep", lengths=(1,), batch=False),
        case("not normalized", lengths=(300, 100), normalize=False),
        case("strided heads", "deep", lengths=(100, 100), row_stride=136, out_stride=144),
        case("final states in place of the initial", lengths=(100, 0, 64), in_place=True),
        case("depth 64, width 32", "deep", lengths=(100, 100), depth=64, width=32),
        case("depth 16, width 128", "deep", lengths=(100, 100), depth=16),
        case("values of 1e4", lengths=(300,), scale=1e4),
        case("keys half alike", lengths=(300,), common=1.0),
        case("nothing forgotten", lengths=(300,), forgetting=0.0),
        # What was stored in one segment is still there in the ones behind it.
        big("12,000 tokens of small betas, one sequence", lengths=(12_000,), forgetting=0.0, most_beta=0.03, **QWEN),
        big("the same, two", lengths=(5000, 7000), heads=(1, 2), forgetting=1e-4, most_beta=0.03, in_place=True),
        big("3,000 tokens, depth 64, width 128", lengths=(3000,), depth=64),
        case("all forgotten", lengths=(300,), forgetting=100.0),
        case("gates in bfloat16", lengths=(100, 100), gate_dtype=BF16, gate_stride=9),
        case("begun again here and there, its own scale", lengths=(300, 40), extremes=True, query_scale=0.7),
        far("offsets above 2^31", lengths=(3,), heads=(1, 1), batch=False, initial=False, row_stride=FAR),
        # 16,500 short sequences have a workspace of more than 2^31 elements.
        case("a workspace above 2^31", "deep", lengths=(1,) * 16500, heads=(16, 32), depth=16, width=16, initial=False),
        *(
            case(
                f"sweep: {length} tokens, {key_heads} and {value_heads} heads",
                "deep",
                lengths=(length, 64, 31),
                heads=(key_heads, value_heads),
            )
            for length in (33, 128, 2000)
            for key_heads, value_heads in ((1, 1), (4, 4), (16, 32), (3, 12))
        ),
        small("float16, two sequences", "quick", lengths=(35, 1), depth=16, width=32),
        small("float16, one sequence, packed", lengths=(40,), batch=False, packed=True, initial=False, **TINY),
        small("float16, no token", lengths=(0, 0), **TINY),
        small(
            "float16, depth 16, not normalized",
            lengths=(20, 0, 33),
            heads=(1, 3),
            depth=16,
            width=32,
            normalize=False,
            row_stride=48,
            out_stride=40,
        ),
        small("float16, begun again here and there", lengths=(40, 7), heads=(1, 2), extremes=True, **TINY),
        small("float16, strided gates, its own scale", lengths=(33,), gate_stride=7, query_scale=0.7, **TINY),
        small("float16, keys more than half alike", lengths=(50,), heads=(1, 1), common=2.0, **TINY),
        small("float16, all forgotten", lengths=(33,), heads=(1, 1), forgetting=100.0, **TINY),
        small("float16, values of 1000", lengths=(100,), heads=(1, 1), scale=1000.0, in_place=True, **TINY),
        small("float16, gates too, their own strides", lengths=(35, 20), gate_dtype=FP16, strides=STRIDES, **TINY),
        small("float16, small betas", lengths=(150, 130), heads=(1, 2), forgetting=0.002, most_beta=0.1, **TINY),
        small("float16, several segments, width 32", lengths=(150, 130), heads=(1, 2), depth=16, width=32),
        small("float16, norms near 1e-3", lengths=(33,), heads=(1, 2), key_scale=1.8e-4, **TINY),
    ),
    mutants=(
        Mutant("state not decayed", "b_k, remaining)", "b_k, state)", CARRY),
        Mutant("state started again", "b_k, remaining)", "b_k)", CARRY),
        Mutant("initial state ignored", "tl.load(initial_state + within)", "state", CARRY),
        Mutant(
            "rows of the first segment's state as far apart as it is deep",
            "initial_state + row * K * V + o_v[:, None] + o_k[None, :] * V",
            "initial_state + row * K * V + o_v[:, None] + o_k[None, :] * K",
            CARRY,
        ),
        Mutant(
            "initial state ignored by the first segment",
            "tl.load(initial_state + row",
            "0.0 * tl.load(initial_state + row",
            CARRY,
        ),
        Mutant("what came before a segment forgotten", "tl.dot(state.to(b_a.dtype), b_a, b_b)", "b_b", CARRY),
        Mutant(
            "what a segment adds forgotten",
            "tl.dot(state.to(b_a.dtype), b_a, b_b)",
            "tl.dot(state.to(b_a.dtype), b_a)",
            CARRY,
        ),
        Mutant("always the first transition", "(before - 1) * K * K", "(before - before) * K * K", CARRY),
        Mutant("values in a transition", "VALUES=False, OUTPUT=False", "VALUES=True, OUTPUT=False", CARRY),
        Mutant("a transition from zero", "== o_v[:, None], 1.0, 0.0)", "== o_v[:, None], 0.0, 0.0)", CARRY),
        Mutant("segments a chunk late", "segment // segments * CHUNK", "segment // segments * CHUNK + CHUNK", CARRY),
        Mutant("the first segment keeps its state", "(segment == segments - 1)", "(segment == 1)", CARRY),
        Mutant("blocks joined with the wrong sign", "inverse - _product(joint", "inverse + _product(joint", WY),
        Mutant("blocks joined with what was not", "inverse_t - _product(inverse_t, joint)", "inverse_t", WY),
        Mutant("the last blocks not joined", "tl.static_range(1, 4)", "tl.static_range(1, 3)", WY),
        Mutant("rows of blocks joined with the wrong sign", "b_t = -_product(", "b_t = _product(", WY),
        Mutant("a token corrects itself", "tl.where(down > across, row_of_n", "tl.where(down >= across, row_of_n", WY),
        Mutant("a token does not read itself", "tl.where(down >= across, gamma", "tl.where(down > across, gamma", WY),
        Mutant("beta of the other token", "betas[i][None, :]  # [", "betas[i][:, None]  # [", WY),
        Mutant("beta forgotten behind the solver", "(b_t * betas[j][None, :])", "b_t", WY),
        Mutant(
            "keys of another head", "k + begin * k_stride + head // GROUP", "k + begin * k_stride + head % GROUP", CARRY
        ),
        Mutant(
            "keys of another head in segments",
            "k += begin * k_stride + head // GROUP",
            "k += begin * k_stride + head % GROUP",
            CARRY,
        ),
        Mutant("keys not normalized", "b_k.T), epsilon, NORMALIZE)", "b_k.T), epsilon, False)", WY),
        Mutant(
            "prediction not decayed", "line + i * BLOCK, tl.exp(b_g) * k_factors", "line + i * BLOCK, k_factors", WY
        ),
        Mutant("deltas decayed from the chunk's first token", "tl.exp(g_last - b_g)", "tl.exp(b_g)", WY),
        Mutant("decays of the block alone", ", axis=0) + g_last", ", axis=0)", WY),
        Mutant(
            "half of the state read",
            "b_o = tl.dot(b_s, b_q.T)",
            "b_o = tl.dot(state.to(b_s.dtype) * 0.5, b_q.T)",
            CARRY,
        ),
        Mutant("factors of the first chunk", "factors = next_factors", "factors += 0", CARRY),
        Mutant(
            "the state's factor of the chunk before",
            "state_factor = next_state",
            "state_factor += 0.0 * next_state",
            CARRY,
        ),
        Mutant("factors of queries of the chunk before", "q_factor = next_q_factor", "q_factor += 0.0", CARRY),
        Mutant(
            "a sequence begins a slot late",
            ".to(tl.int64), middle, CHUNK) <= slot",
            ".to(tl.int64), middle, CHUNK) < slot",
            WY,
        ),
        Mutant("decays of -1e9 summed up", "tl.maximum(b_g.to(tl.float32), _FORGOTTEN)", "b_g.to(tl.float32)", WY),
        Mutant("decays of another token", "head + row * log_decay_stride", "head + row * VALUE_HEADS", WY),
        Mutant("beta of another token", "head + row * beta_stride", "head + row * VALUE_HEADS", WY),
        *COMMON_MUTANTS,
        Mutant("a norm of zero", "tl.rsqrt(squares + epsilon)", "tl.rsqrt(squares)", WY),
        Mutant("k at the distance of q in the preparation", " k_stride=k.stride(0)", " k_stride=q.stride(0)"),
        Mutant("k at the distance of q", '"k_stride": k.stride(0)', '"k_stride": q.stride(0)'),
        Mutant("heads of k at the distance of q", '"k_head_stride": k.stride(1)', '"k_head_stride": q.stride(1)'),
        Mutant("tokens of the result without gaps", "out.stride(0)", "value_heads * out.stride(1)"),
        Mutant("deltas 0.3 % too large", "(delta * delta_factor[None", "(1.003 * delta * delta_factor[None", CARRY),
        Mutant("output stored behind the last token", "mask=present[None, :])", "mask=(row >= 0)[None, :])", CARRY),
    ),
    speeds=(
        *(
            # 1.1 of what was measured on an H200 (2026-11-27): 5.2, 4.4 and 4.1 floors. FLA 0.6: 11.5, 10.4 and 10.2.
            Speed(f"{tokens} tokens", {"lengths": (tokens,), **QWEN}, bar=bar, work=work)
            for tokens, bar in ((2048, 5.7), (8192, 4.8), (32768, 4.5))
        ),
        # 2.6 floors there.
        Speed("8 sequences", {"lengths": (1000,) * 8, **QWEN, "batch": True, "initial": True}, bar=2.9, work=work),
    ),
    matrix_instructions=True,
)
