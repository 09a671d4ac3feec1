"""What the suite runs for grouped_mm, and what it expects."""

from typing import Any

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
from kernels_smoke.suite.correctness.draw import BF16, FP16, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, case

SPECIALIZED = "kernels_smoke.moe.specialized_grouped_mm"
NAMES = ("a", "b", "offsets", "rows")


def draw_inputs(draw: Draw, **shape: Any) -> Inputs:
    """Draw the operands, bfloat16 unless said otherwise."""
    return draw_operands(draw, **{"dtype": BF16, **shape})


KERNEL = Kernel(
    name="grouped_mm",
    module="kernels_smoke.moe.grouped_mm",
    inputs=draw_inputs,
    outputs=outputs,
    launch=lambda module, inputs, outputs: module.grouped_mm(
        *(inputs[name] for name in NAMES[:3]), rows=inputs["rows"], out=outputs["out"]
    ),
    reference=lambda inputs: {"out": reference.grouped_mm(*(inputs[name] for name in NAMES))},
    checks={"out": NearWhereWritten(bfloat16=2.5e-3, float16=5e-4, float32=1e-5)},
    cases=(
        *COMMON_CASES,
        case("float16, ragged, float16 out", "deep", counts=(5, 130, 0, 64), n=80, k=128, dtype=FP16, out_dtype=FP16),
        small("float16, values of 1e2", counts=(3, 18), values=1e2),
    ),
    mutants=(
        *COMMON_MUTANTS,
        Mutant("one step of K for all", "acc = tl.dot(left, right.T, acc)", "acc = tl.dot(left, right.T)", TILES),
        in_gluon("rows of the next group stored by TMA", "rows=out,", "rows=None,", SPECIALIZED),
        in_gluon("the first matrix for all groups", "group_rows=group_rows", "group_rows=0", SPECIALIZED),
    ),
    speeds=speeds(large=1.31, few=1.10),
    matrix_instructions=True,
)
