"""What the suite runs for ``block_diagonal_attention_backward``, and what it expects."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal

import torch

from kernels_smoke.block_attention import reference
from kernels_smoke.block_attention.cases_shared import (
    BATCH,
    COMMON_CASES,
    JAGGED,
    MANY,
    SHARED_MUTANTS,
    WHOLE,
    draw_attention,
    draw_heads,
    exactly,
)
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, case

TENSORS = ("q", "k", "v", "dout", "blocks")
GRADIENTS = ("dq", "dk", "dv")


def draw_inputs(
    draw: Draw,
    *,
    lengths: tuple[int, ...],
    heads: int,
    head_dim: int,
    rotary: Literal["", "halves", "interleaved"] = "",
    angle_dtype: torch.dtype = FP32,
    angle_stride: int = 0,
    **more: Any,
) -> Inputs:
    """Draw what the forward pass takes, and dout, in the layout of q.

    ``rotary``: which elements are pairs; without it nothing is rotated. The angles are drawn from a whole turn.
    """
    cos_sin = None
    if rotary:
        angles = draw.uniform(sum(lengths), head_dim // 2, low=0.0, high=6.28, dtype=FP32)
        turned = torch.cat((angles.cos(), angles.sin()), dim=1).to(angle_dtype)
        cos_sin = draw.place(turned, row_stride=angle_stride, name="cos_sin")
    drawn = draw_attention(draw, lengths=lengths, heads=heads, head_dim=head_dim, **more)
    apart = {name: more.get(name, 0) for name in ("head_stride", "token_stride")}
    strides = drawn["strides"].get("dout", ())
    dout = draw_heads(
        draw, sum(lengths), heads, head_dim, dtype=drawn["q"].dtype, **apart, strides=strides, name="dout"
    )
    return {**drawn, "dout": dout, "cos_sin": cos_sin, "interleaved": rotary == "interleaved"}


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """The gradients look like ``q``, with heads ``out_stride`` elements apart."""
    q, strides = inputs["q"], inputs["strides"]
    return {name: (tuple(q.shape), q.dtype, strides.get(name, inputs["out_stride"])) for name in GRADIENTS}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    arguments = {name: inputs[name] for name in (*TENSORS, "cos_sin", "interleaved", "scale")}
    return module.block_diagonal_attention_backward(**arguments, out=tuple(outputs[name] for name in GRADIENTS))


def expected(inputs: Inputs) -> Tensors:
    """The gradients in float64."""
    arguments = {name: inputs[name] for name in ("q", "k", "v", "dout", "lengths", "scale", "cos_sin", "interleaved")}
    return dict(zip(GRADIENTS, reference.gradients(**arguments), strict=True))


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Four tensors and the angles in, three out; five products for each block."""
    read = [inputs[name] for name in (*TENSORS, "cos_sin") if inputs[name] is not None]
    moved = sum(tensor.nbytes for tensor in (*read, *outputs.values()))
    return Work(bytes=moved, flops=5 * 2 * 64 * inputs["q"].numel())


# Where one probability is nearly 1, the gradient of the scores is a small difference of large numbers.
NEAR = Near(bfloat16=4e-3, float32=4e-6, floor=0.1)
LARGE = {"heads": 4, "head_dim": 128}

KERNEL = Kernel(
    name="block_diagonal_attention_backward",
    module="kernels_smoke.block_attention.block_diagonal_attention_backward",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks=dict.fromkeys(GRADIENTS, NEAR),
    cases=(
        *COMMON_CASES,
        case("the same, rotated", lengths=MANY, heads=4, head_dim=128, rotary="halves"),
        case("the same, neighbours rotated", lengths=MANY, heads=4, head_dim=128, rotary="interleaved"),
        case("head of 64, rotated", lengths=MANY, heads=3, head_dim=64, rotary="halves", angle_dtype=BF16),
        case("head of 64, neighbours rotated", lengths=MANY, heads=3, head_dim=64, rotary="interleaved"),
        case("float16", lengths=MANY, heads=2, head_dim=128, dtype=FP16, rotary="halves"),
        case(
            "strided tokens",
            lengths=JAGGED,
            heads=2,
            head_dim=128,
            token_stride=3 * 256 + 8,
            out_stride=136,
            rotary="halves",
            angle_stride=132,
        ),
        case("no token", lengths=(0, 0), heads=2, head_dim=128, rotary="halves"),
        exactly("fp32, rotated", lengths=JAGGED, heads=2, head_dim=64, rotary="halves"),
        exactly("fp32, neighbours rotated", lengths=(7, 64), heads=1, head_dim=128, rotary="interleaved"),
        exactly(
            "fp32, strided tokens",
            lengths=(66,),
            heads=2,
            head_dim=64,
            token_stride=400,
            out_stride=70,
            rotary="halves",
            angle_stride=66,
        ),
        exactly("fp32, values of 1e4", lengths=(64, 5), heads=1, head_dim=64, values=1e4),
        *(
            case(
                f"{heads} heads of {head_dim}, {str(dtype)[6:]}, {rotary or 'not rotated'}",
                "deep",
                lengths=tuple(range(200)),
                heads=heads,
                head_dim=head_dim,
                dtype=dtype,
                rotary=rotary,
            )
            for dtype in (BF16, FP16)
            for head_dim in (64, 128)
            for heads, rotary in ((1, ""), (7, "halves"), (7, "interleaved"))
        ),
    ),
    mutants=(
        *SHARED_MUTANTS,
        Mutant("the row sum not subtracted", "(dp - delta)", "dp"),
        Mutant("the row sum without the probabilities", "tl.sum(p * dp", "tl.sum(dp"),
        Mutant("probabilities not transposed", "to(b_do.dtype).T", "to(b_do.dtype)"),
        Mutant("gradients of the scores not transposed", "tl.dot(ds.T", "tl.dot(ds"),
        Mutant("dk not scaled", "ds.T, b_q) * scale", "ds.T, b_q)"),
        Mutant("rotated forward", "first * cos + second * sin", "first * cos - second * sin"),
        Mutant("neighbours for halves", "    if INTERLEAVED:\n        pairs", "    if not INTERLEAVED:\n        pairs"),
        Mutant("dk not rotated", "b_dk = _rotated_back(b_dk, cos", "_ = _rotated_back(b_dk, cos"),
        Mutant(
            "rotated after it was rounded",
            "b_dq = _rotated_back(b_dq,",
            "b_dq = _rotated_back(b_dq.to(tl.float16).to(tl.float32),",
            where=("interpret",),
            why="only float32 shows it, in which a GPU is not asked to multiply",
        ),
        Mutant("k at the distances of q", "strides(q=q, k=k,", "strides(q=q, k=q,"),
        Mutant("dout at the distances of q", "dout=dout, dq=dq, dk=dk, dv=dv)", "dout=q, dq=dq, dk=dk, dv=dv)"),
        Mutant("tokens of dk at the distance of dq's", "HEAD_DIM, dk_token", "HEAD_DIM, dq_token"),
        Mutant("heads of dv at the distance of dq's", "dv + head * dv_head", "dv + head * dq_head"),
        Mutant("sines from the place of the cosines", "_load(cos_sin + HEAD_DIM // 2,", "_load(cos_sin,"),
        Mutant(
            "one tile for each program",
            "tl.num_programs(0) if PERSISTENT",
            "tiles if PERSISTENT",
            where=("interpret",),
            why="on all GPUs but Hopper every tile has a program",
        ),
    ),
    speeds=(
        Speed("691,200 tokens, 4 heads of 128", {"lengths": WHOLE, **LARGE}, bar=1.25, work=work),
        Speed("the same, rotated", {"lengths": WHOLE, **LARGE, "rotary": "interleaved"}, bar=1.5, work=work),
        Speed("1,152 jagged sequences, 4 heads of 128", {"lengths": BATCH, **LARGE}, bar=1.35, work=work),
    ),
    matrix_instructions=True,
)
