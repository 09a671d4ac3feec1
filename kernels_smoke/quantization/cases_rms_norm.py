"""What the suite runs for RMS norm with quantisation, and what it expects."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.quantization import reference
from kernels_smoke.quantization.inputs import (
    BOUND_IGNORED,
    DTYPES,
    GROUP_LAYOUTS,
    GROUP_RESULTS,
    LEAST_DROPPED,
    MULTIPLIED,
    NOT_CLAMPED,
    RANGE_OF_FNUZ,
    ROW_LAYOUTS,
    ROW_RESULTS,
    call,
    case,
    described,
    draw_bound,
    draw_matrix,
    result_layout,
    work,
)
from kernels_smoke.suite.compare import Codes, Exact, Relative
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Check, Inputs, Kernel, Mutant, Output, Speed, Tensors

EPSILON = 1e-5  # not the default, so that it shows whether it is passed on
LEAST = 1 / (448 * 512)


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = torch.bfloat16,
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


def draw_rows(draw: Draw, *, bound: float | None = None, **shape: Any) -> Inputs:
    """The same and the bound."""
    return {**draw_inputs(draw, **shape), "bound": draw_bound(draw, bound)}


def draw_groups(draw: Draw, *, group: int = 128, **shape: Any) -> Inputs:
    """The same and the groups."""
    return {**draw_inputs(draw, **shape), "group": group}


def row_outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Codes like ``x``, and a scale for each row."""
    return described(inputs, *inputs["x"].shape)


def group_outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Codes like ``x``, and a scale for each group."""
    rows, width = inputs["x"].shape
    return described(inputs, rows, width, width // inputs["group"])


def launch_rows(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return call(
        module.rms_norm_dynamic_per_token_quant,
        inputs,
        outputs,
        inputs["x"],
        inputs["weight"],
        epsilon=EPSILON,
        residual=inputs["residual"] if inputs["add"] else None,
        scale_upper_bound=inputs["bound"],
    )


def launch_groups(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return call(
        module.rms_norm_per_block_quant,
        inputs,
        outputs,
        inputs["x"],
        inputs["weight"],
        group=inputs["group"],
        epsilon=EPSILON,
        residual=inputs["residual"] if inputs["add"] else None,
    )


def row_reference(inputs: Inputs) -> Tensors:
    """Quotients, scales and the sum in high precision."""
    total, normed = _normed(inputs)
    codes, scales = reference.by_row(normed, LEAST, inputs["bound"])
    return {"codes": codes, "scales": scales, "residual": total if inputs["add"] else inputs["residual"]}


def group_reference(inputs: Inputs) -> Tensors:
    """Quotients, scales and the sum in high precision."""
    total, normed = _normed(inputs)
    codes, scales = reference.by_group(normed, inputs["group"], LEAST)
    residual = total if inputs["add"] else inputs["residual"]
    return {"codes": codes, "scales": scales.T if inputs["column_major"] else scales, "residual": residual}


def _normed(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor]:
    total = reference.add(inputs["x"], inputs["residual"] if inputs["add"] else None)
    return total, reference.rms_norm(total, inputs["weight"], epsilon=EPSILON)


RESIDUAL = {"dtype": torch.float32, "row_stride": 400, "residual_stride": 420}
CHECKS: Mapping[str, Check] = {"codes": Codes(), "scales": Relative(1e-6), "residual": Exact()}
SUM = "x = rounded.to(tl.float32)"
LOAD = "tl.load(x_pointer + rows * x_stride + columns, mask=mask,"
STORE = "tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)"
MUTANTS = (
    Mutant("residual not added", "(x + residual.to(tl.float32))", "(x)"),
    Mutant("residual not updated", "tl.store(residual_pointers, rounded,", "tl.store(residual_pointers, residual,"),
    Mutant("norm of the sum before it is rounded", SUM, "x = x + residual.to(tl.float32)"),
    Mutant("epsilon dropped", "+ epsilon)", ")"),
    Mutant("weight dropped", " * weight.to(tl.float32)", ""),
    Mutant("stride of the wrong tensor", "x_pointer + rows * x_stride", "x_pointer + rows * residual_stride"),
    Mutant("greatest value instead of magnitude", "tl.max(tl.abs(normed)", "tl.max((normed)"),
    Mutant("column mask of the load dropped", LOAD, LOAD.replace("mask=mask", "mask=rows < count")),
    Mutant("column mask of the store dropped", STORE, STORE.replace("mask=mask", "mask=rows < count")),
    LEAST_DROPPED,
    RANGE_OF_FNUZ,
    MULTIPLIED,
)

PER_TOKEN = Kernel(
    name="rms_norm_dynamic_per_token_quant",
    module="kernels_smoke.quantization.rms_norm_dynamic_per_token_quant",
    inputs=draw_rows,
    outputs=row_outputs,
    launch=launch_rows,
    reference=row_reference,
    checks=CHECKS,
    modifies=("residual",),
    # A code may differ where float32 falls on the other side of a tie: so there are at least 4000 in a case on a GPU.
    cases=(
        case("4096 wide", "quick", rows=272, width=4096),
        *(
            case(f"{width} wide", rows=rows, width=width)
            for rows, width in ((7, 1), (37, 127), (17, 300), (7, 1025), (7, 4097), (7, 5137), (7, 16384))
        ),
        case("no row", "full", EVERYWHERE, rows=0, width=128, dtype=torch.float32),
        case("one row", rows=1, width=4096),
        case("without a residual", rows=7, width=4096, add=False),
        case("float32 weight", rows=7, width=4096, weight_dtype=torch.float32),
        case("strided rows", rows=7, width=1000, row_stride=1024),
        case("misaligned rows", rows=7, width=1000, row_stride=1001),
        case("fp16", rows=7, width=4096, dtype=torch.float16),
        case("values of 1e4", rows=7, width=4096, scale=1e4),
        case("values of 1e16", rows=7, width=4096, scale=1e16),
        case("rows beyond 2^31 elements", "deep", rows=3, width=4096, row_stride=2**30 + 8),
        *(
            case(f"{name}, {width} wide", "full", EVERYWHERE, rows=17, width=width, dtype=DTYPES[name], row_stride=640)
            for name in ("fp32", "fp16")
            for width in (300, 512)
        ),
        case("fp16 near the greatest", "full", EVERYWHERE, rows=17, width=300, dtype=torch.float16, scale=5e3),
        case("upper bound", "full", EVERYWHERE, rows=17, width=300, dtype=torch.float32, bound=1.25),
        case("its own results", "full", EVERYWHERE, rows=7, width=300, dtype=torch.float16, own=True),
        case("upper bound of zero", "full", EVERYWHERE, rows=7, width=300, dtype=torch.float32, bound=0.0),
        *ROW_LAYOUTS,
        case("residual strided otherwise", "full", EVERYWHERE, rows=7, width=300, **RESIDUAL),
        case("squares near epsilon", "full", EVERYWHERE, rows=7, width=300, dtype=torch.float32, scale=3e-3),
        case("fp32, without a residual", "full", EVERYWHERE, rows=17, width=300, dtype=torch.float32, add=False),
    ),
    mutants=(
        *MUTANTS,
        *ROW_RESULTS,
        Mutant("residual taken for dense", "rows * residual_stride", "rows * width"),
        Mutant("mean over the block", "/ width + epsilon", "/ BLOCK + epsilon"),
        Mutant("epsilon of another size", "/ width + epsilon", "/ width + 1e-6"),
        Mutant(
            "epsilon in the sum instead of the mean",
            "tl.sum(x * x, axis=1, keep_dims=True) / width + epsilon",
            "(tl.sum(x * x, axis=1, keep_dims=True) + epsilon) / width",
        ),
        Mutant("scale of the tile, not of the row", "scales_pointer + rows *", "scales_pointer + rows // ROWS *"),
        BOUND_IGNORED,
        NOT_CLAMPED,
    ),
    speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.15, work=work),),
)

PER_BLOCK = Kernel(
    name="rms_norm_per_block_quant",
    module="kernels_smoke.quantization.rms_norm_per_block_quant",
    inputs=draw_groups,
    outputs=group_outputs,
    launch=launch_groups,
    reference=group_reference,
    checks=CHECKS,
    modifies=("residual",),
    cases=(
        case("4096 wide", "quick", rows=272, width=4096),
        *(case(f"{width} wide", rows=37, width=width) for width in (128, 384, 5120)),
        *(case(f"groups of {group}", rows=137, width=3 * group, group=group) for group in (1, 16, 64, 1024)),
        case("no row", "full", EVERYWHERE, rows=0, width=256, dtype=torch.float32),
        case("one row", rows=1, width=4096),
        case("16384 wide", rows=7, width=16384),
        case("without a residual", rows=7, width=4096, add=False),
        case("float32 weight", rows=7, width=4096, weight_dtype=torch.float32),
        case("strided rows", rows=7, width=1024, row_stride=1032),
        case("misaligned rows", rows=7, width=1024, row_stride=1025),
        case("column-major scales", rows=37, width=1024, column_major=True),
        case("fp16", rows=7, width=4096, dtype=torch.float16),
        case("values of 1e4", rows=7, width=4096, scale=1e4),
        case("values of 1e16", rows=7, width=4096, scale=1e16),
        case("rows beyond 2^31 elements", "deep", rows=3, width=4096, row_stride=2**30 + 8),
        *(
            case(f"{name}, {width} wide", "full", EVERYWHERE, rows=17, width=width, dtype=DTYPES[name], row_stride=640)
            for name in ("fp32", "fp16")
            for width in (384, 512)
        ),
        case("fp16 near the greatest", "full", EVERYWHERE, rows=17, width=384, dtype=torch.float16, scale=5e3),
        case("fp32, without a residual", "full", EVERYWHERE, rows=17, width=384, dtype=torch.float32, add=False),
        case("column-major, fp32", "full", EVERYWHERE, rows=17, width=384, dtype=torch.float32, column_major=True),
        *(
            case(
                f"its own results{', column-major' * column_major}",
                "full",
                EVERYWHERE,
                rows=7,
                width=384,
                dtype=torch.float16,
                column_major=column_major,
                own=True,
            )
            for column_major in (False, True)
        ),
        *GROUP_LAYOUTS,
        case("residual strided otherwise", "full", EVERYWHERE, rows=7, width=384, **RESIDUAL),
        case("squares near epsilon", "full", EVERYWHERE, rows=7, width=384, dtype=torch.float32, scale=3e-3),
    ),
    mutants=(
        *MUTANTS,
        *GROUP_RESULTS,
        Mutant("residual taken for dense", "rows * residual_stride", "rows * group_count * GROUP"),
        Mutant("mean over the block", "(group_count * GROUP)", "(GROUPS * GROUP)"),
        Mutant("epsilon of another size", "(group_count * GROUP) + epsilon", "(group_count * GROUP) + 1e-6"),
        Mutant(
            "epsilon in the sum instead of the mean",
            "squares / (group_count * GROUP) + epsilon",
            "(squares + epsilon) / (group_count * GROUP)",
        ),
        Mutant("scale of the next group", "+ groups * scales_group_stride", "+ (groups + 1) * scales_group_stride"),
        Mutant("scales as if row-major", "groups * scales_group_stride", "groups"),
    ),
    speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.15, work=work),),
)

KERNELS = {kernel.name: kernel for kernel in (PER_TOKEN, PER_BLOCK)}
