"""What the suite runs for grouped_mm_blockwise, and what it expects."""

from typing import Any

import torch

from kernels_smoke.moe import reference
from kernels_smoke.moe.cases_shared import (
    COMMON_CASES,
    COMMON_MUTANTS,
    TILES,
    draw_operands,
    in_gluon,
    outputs,
    small,
    speeds,
)
from kernels_smoke.suite.correctness.compare import NearWhereWritten
from kernels_smoke.suite.correctness.draw import FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant

FP8 = torch.float8_e4m3fn
SPECIALIZED = "kernels_smoke.matmul.specialized_blockwise"
NAMES = ("a", "b", "scale_a", "scale_b", "offsets")


def draw_inputs(draw: Draw, *, n: int, k: int, transposed: bool = False, **operands: Any) -> Inputs:
    """Draw the operands, fp8 unless said otherwise, and their scales; with ``transposed``, both are column-major."""
    drawn = draw_operands(draw, **{"dtype": FP8, "n": n, "k": k, **operands})
    blocks_n, blocks_k = -(-n // 128), -(-k // 128)
    (tokens, _), groups = drawn["a"].shape, drawn["b"].shape[0]
    of_a = (blocks_k, tokens) if transposed else (tokens, blocks_k)
    of_b = (groups, blocks_k, blocks_n) if transposed else (groups, blocks_n, blocks_k)
    scale_a = draw.uniform(*of_a, low=0.01, high=0.1, dtype=FP32, name="scale_a")
    scale_b = draw.uniform(*of_b, low=0.01, high=0.1, dtype=FP32, name="scale_b")
    return {**drawn, "scale_a": scale_a, "scale_b": scale_b, "transposed": transposed}


def arguments(inputs: Inputs) -> list[torch.Tensor]:
    """All that is passed by position, with the scales in the order in which they are [rows, blocks]."""
    turned = ("scale_a", "scale_b") if inputs["transposed"] else ()
    return [inputs[name].transpose(-1, -2) if name in turned else inputs[name] for name in NAMES]


def expected(inputs: Inputs) -> dict[str, torch.Tensor]:
    """The product in float64."""
    a, b, scale_a, scale_b, offsets = arguments(inputs)
    return {"out": reference.grouped_mm(a, b, offsets, inputs["rows"], scale_a, scale_b)}


KERNEL = Kernel(
    name="grouped_mm_blockwise",
    module="kernels_smoke.moe.grouped_mm_blockwise",
    inputs=draw_inputs,
    outputs=outputs,
    launch=lambda module, inputs, outputs: module.grouped_mm_blockwise(
        *arguments(inputs), rows=inputs["rows"], out=outputs["out"]
    ),
    reference=expected,
    # On Hopper, sums of fp8 products keep some 14 bits within a block: as scaled_mm_blockwise.
    checks={"out": NearWhereWritten(bfloat16=2.5e-3, float16=1.5e-3, float32=1e-5)},
    cases=(
        *COMMON_CASES,
        small("float16, several blocks of K and N", counts=(3, 18), n=140, k=270),
        small("float16, few rows, several blocks, column-major scales", counts=(3, 8), n=140, k=270, transposed=True),
    ),
    mutants=(
        *COMMON_MUTANTS,
        Mutant("row scales of the first block only", "row_scale = next_row_scale", "row_scale = row_scale", TILES),
        Mutant("scales of the first columns", "column // BLOCK * scale_b_stride_n", "0 * scale_b_stride_n", TILES),
        in_gluon("rows of the next group stored by TMA", "None if offsets is None else out", "None", SPECIALIZED),
        in_gluon("the first matrix for all groups", "group_rows=group_rows", "group_rows=0", SPECIALIZED),
        in_gluon("scales of the first group", "scale_b_stride_e=scale_b.stride(0)", "scale_b_stride_e=0", SPECIALIZED),
    ),
    speeds=speeds(large=1.73, few=1.18),
    matrix_instructions=True,
)
