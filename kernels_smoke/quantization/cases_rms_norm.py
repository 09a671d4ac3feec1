"""What the suite runs for RMS norm with quantisation, and what it expects."""

from collections.abc import Mapping
from typing import Any

import torch

from kernels_smoke.quantization import reference
from kernels_smoke.quantization.cases_shared import (
    COMMON_MUTANTS,
    DTYPES,
    FUSED_GROUP_CASES,
    FUSED_ROW_CASES,
    GROUP_MUTANTS,
    LEAST,
    MASKS,
    ROW_MUTANTS,
    by_groups,
    by_rows,
    draw_matrix,
    given_scales,
    launcher,
    outputs,
    quantised,
    result_layout,
    work,
)
from kernels_smoke.quantization.layout import FEW_ROWS
from kernels_smoke.suite.correctness.compare import Codes, Exact, Relative
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Check, Inputs, Kernel, Mutant, Speed, Tensors, big, case, here

EPSILON = 1e-5  # not the default, so that it shows whether it is passed on


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = BF16,
    weight_dtype: torch.dtype | None = None,
    scale: float = 1.0,
    row_stride: int = 0,
    residual_stride: int = 0,
    add: bool = True,
    **layout: Any,
) -> Inputs:
    """Draw x and residual [rows, width] and weight [width]; ``layout`` says how the results lie.

    Without ``add`` the residual must stay as it is.
    """
    x = draw_matrix(draw, rows, width, name="x", dtype=dtype, scale=scale, row_stride=row_stride)
    residual = draw_matrix(draw, rows, width, name="residual", dtype=dtype, scale=scale, row_stride=residual_stride)
    weight = draw.normal(width, dtype=weight_dtype or dtype, name="weight")
    return {"x": x, "residual": residual, "weight": weight, "add": add, **result_layout(**layout)}


def expected(inputs: Inputs) -> Tensors:
    """Quotients, scales and the sum in high precision."""
    total = reference.add(inputs["x"], inputs["residual"] if inputs["add"] else None)
    normed = reference.rms_norm(total, inputs["weight"], epsilon=EPSILON)
    return {**quantised(normed, inputs, LEAST), "residual": total if inputs["add"] else inputs["residual"]}


CHECKS: Mapping[str, Check] = {"codes": Codes(reach=1e-6), "scales": Relative(1e-6), "residual": Exact()}
COMMON = (
    case("4096 wide", "quick", rows=272, width=4096),
    case("without a residual", rows=7, width=4096, add=False),
    case("float32 weight", rows=7, width=4096, weight_dtype=FP32),
    case("values of 1e16", rows=7, width=4096, scale=1e16),
)
RESIDUAL = {"dtype": FP32, "row_stride": 400, "residual_stride": 420}
SUM = "x = rounded.to(tl.float32)"
MUTANTS = (
    Mutant("residual not added", "(x + residual.to(tl.float32))", "(x)"),
    Mutant("residual not updated", "tl.store(residual_pointers, rounded,", "tl.store(residual_pointers, residual,"),
    Mutant("norm of the sum before it is rounded", SUM, "x = x + residual.to(tl.float32)"),
    Mutant("epsilon dropped", "+ epsilon)", ")"),
    Mutant("weight dropped", " * weight.to(tl.float32)", ""),
    Mutant("stride of the wrong tensor", "x_pointer + rows * x_stride", "x_pointer + rows * residual_stride"),
    Mutant("greatest value instead of magnitude", "tl.max(tl.abs(normed)", "tl.max((normed)"),
    *MASKS,
    *COMMON_MUTANTS,
)

PER_TOKEN = Kernel(
    name="rms_norm_dynamic_per_token_quant",
    module="kernels_smoke.quantization.rms_norm_dynamic_per_token_quant",
    inputs=by_rows(draw_inputs),
    outputs=outputs,
    launch=launcher("rms_norm_dynamic_per_token_quant", epsilon=EPSILON),
    reference=expected,
    checks=CHECKS,
    given=given_scales,
    modifies=("residual",),
    cases=(
        *COMMON,
        *FUSED_ROW_CASES,
        here("weight loaded after the sum", rows=FEW_ROWS + 2, width=128, dtype=FP16),
        big("70,001 rows", rows=70_001, width=1025),
        *(
            case(f"{width} wide", rows=rows, width=width)
            for rows, width in ((7, 1), (37, 127), (17, 300), (7, 1025), (7, 4097), (7, 5137), (7, 16384))
        ),
        case("strided rows", rows=7, width=1000, row_stride=1024),
        case("misaligned rows", rows=7, width=1000, row_stride=1001),
        *(
            here(f"{name}, {width} wide", rows=17, width=width, dtype=DTYPES[name], row_stride=640)
            for name in ("fp32", "fp16")
            for width in (300, 512)
        ),
        here("fp16 near the greatest", rows=17, width=300, dtype=FP16, scale=5e3),
        here("residual strided otherwise", rows=7, width=300, **RESIDUAL),
        here("squares near epsilon", rows=7, width=300, dtype=FP32, scale=3e-3),
        here("fp32, without a residual", rows=17, width=300, dtype=FP32, add=False),
    ),
    mutants=(
        *MUTANTS,
        *ROW_MUTANTS,
        Mutant("residual taken for dense", "rows * residual_stride", "rows * width"),
        Mutant("mean over the block", "/ width + epsilon", "/ BLOCK + epsilon"),
        Mutant("epsilon of another size", "/ width + epsilon", "/ width + 1e-6"),
        Mutant(
            "epsilon in the sum instead of the mean",
            "tl.sum(x * x, axis=1, keep_dims=True) / width + epsilon",
            "(tl.sum(x * x, axis=1, keep_dims=True) + epsilon) / width",
        ),
    ),
    speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.15, work=work),),
)

PER_BLOCK = Kernel(
    name="rms_norm_per_block_quant",
    module="kernels_smoke.quantization.rms_norm_per_block_quant",
    inputs=by_groups(draw_inputs),
    outputs=outputs,
    launch=launcher("rms_norm_per_block_quant", epsilon=EPSILON),
    reference=expected,
    checks=CHECKS,
    given=given_scales,
    modifies=("residual",),
    cases=(
        *COMMON,
        *FUSED_GROUP_CASES,
        here("weight loaded after the sum", rows=FEW_ROWS + 2, width=128, dtype=FP16),
        big("70,001 rows", rows=70_001, width=384),
        big("16,385 rows of 5,120", rows=16_385, width=5120),
        case("16384 wide", rows=7, width=16384),
        case("strided rows", rows=7, width=1024, row_stride=1032),
        case("misaligned rows", rows=7, width=1024, row_stride=1025),
        *(
            here(f"{name}, {width} wide", rows=17, width=width, dtype=DTYPES[name], row_stride=640)
            for name in ("fp32", "fp16")
            for width in (384, 512)
        ),
        here("fp16 near the greatest", rows=17, width=384, dtype=FP16, scale=5e3),
        here("residual strided otherwise", rows=7, width=384, **RESIDUAL),
        here("squares near epsilon", rows=7, width=384, dtype=FP32, scale=3e-3),
        here("fp32, without a residual", rows=17, width=384, dtype=FP32, add=False),
    ),
    mutants=(
        *MUTANTS,
        *GROUP_MUTANTS,
        Mutant("residual taken for dense", "rows * residual_stride", "rows * group_count * GROUP"),
        Mutant("mean over the block", "(group_count * GROUP)", "(GROUPS * GROUP)"),
        Mutant("epsilon of another size", "(group_count * GROUP) + epsilon", "(group_count * GROUP) + 1e-6"),
        Mutant(
            "epsilon in the sum instead of the mean",
            "squares / (group_count * GROUP) + epsilon",
            "(squares + epsilon) / (group_count * GROUP)",
        ),
    ),
    speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.15, work=work),),
)

KERNELS = {kernel.name: kernel for kernel in (PER_TOKEN, PER_BLOCK)}
