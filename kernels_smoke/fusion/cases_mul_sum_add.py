"""What the suite runs for ``mul_sum_add``, and what it expects."""

from collections.abc import Mapping
from types import ModuleType

import torch

from kernels_smoke.fusion import reference
from kernels_smoke.fusion.cases_shared import FAR, WIDTHS, large
from kernels_smoke.suite.correctness.compare import Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, far, here


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = FP32,
    scale: float = 1.0,
    row_stride: int = 0,
    out_stride: int = 1,
) -> Inputs:
    """Draw x [rows, width]; ``out_stride`` is the distance between two elements of the result.

    Sums cancel: where float32 is held to 1e-6 there must be some rows, so that not all of them come out small.
    """
    x = draw.rows(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name="x")
    return {"x": x, "out_stride": out_stride}


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """One element for each row; when they lie apart, as a column [rows, 1], because rows are what can be strided."""
    rows, dtype, stride = len(inputs["x"]), inputs["x"].dtype, inputs["out_stride"]
    return {"total": ((rows,), dtype) if stride == 1 else ((rows, 1), dtype, stride)}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    total = outputs["total"]
    return module.mul_sum_add(inputs["x"], out=total if total.ndim == 1 else total[:, 0])


def expected(inputs: Inputs) -> Tensors:
    """The result in high precision."""
    total = reference.mul_sum_add(inputs["x"])
    return {"total": total if inputs["out_stride"] == 1 else total[:, None]}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """The input once, the result once."""
    return Work(bytes=inputs["x"].nbytes + outputs["total"].nbytes)


KERNEL = Kernel(
    name="mul_sum_add",
    module="kernels_smoke.fusion.mul_sum_add",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    checks={"total": Rounded()},
    cases=(
        case("a million", "quick", rows=1024, width=1024),
        here("fp32, 127 wide, strided rows", "quick", rows=11, width=127, row_stride=144),
        *(case(f"{width} wide", rows=7, width=width) for width in WIDTHS),
        big("70,001 rows", rows=70_001, width=1025),
        big("1,000,003 wide", rows=5, width=1_000_003),
        case("no row", rows=0, width=128),
        case("bf16, one row", rows=1, width=4096, dtype=BF16),
        case("several steps", rows=33, width=50_001),
        case("bf16", rows=257, width=4096, dtype=BF16),
        case("bf16, values of 1e4", rows=7, width=4096, dtype=BF16, scale=1e4),
        here("fp32, several steps", rows=9, width=8_500),
        here("fp32, one column, strided result", rows=7, width=1, out_stride=3),
        here("fp32, values of 1e4", rows=5, width=300, scale=1e4),
        here("fp16, 300 wide", rows=5, width=300, dtype=FP16),
        here("fp16, 300 rows", rows=300, width=300, dtype=FP16, scale=100.0),
        here("fp16, no row", rows=0, width=300, dtype=FP16),
        far("offsets above 2^31", rows=3, width=1000, dtype=BF16, row_stride=FAR),
        *(
            case(f"sweep: {rows} x {width}, {str(dtype)[6:]}", "deep", rows=rows, width=width, dtype=dtype)
            for dtype in (BF16, FP16, FP32)
            for rows, width in ((65_537, 32), (1023, 1024), (513, 16_384), (33, 1_000_003))
        ),
    ),
    mutants=(
        Mutant("columns without a mask", "& (columns < width)", "& (columns < width + BLOCK)"),
        Mutant("the last row omitted", "(rows < count)[:, None]", "(rows < count - 1)[:, None]"),
        Mutant("one added to each element", "total += 2.0 * x.to(tl.float32)", "total += 2.0 * x.to(tl.float32) + 1.0"),
        Mutant("not doubled", "total += 2.0 * x", "total += x"),
        Mutant(
            "the sum rounded before one is added",
            "tl.sum(total, axis=1) + 1.0",
            "tl.sum(total, axis=1).to(out_pointer.dtype.element_ty).to(tl.float32) + 1.0",
        ),
        Mutant("the last step alone", "total += 2.0 * x", "total = 2.0 * x"),
        Mutant("the last step omitted", "tl.range(0, width, BLOCK", "tl.range(0, width - BLOCK + 1, BLOCK"),
        Mutant("rows taken for dense", "rows[:, None] * x_stride", "rows[:, None] * width"),
        Mutant(
            "a store without a mask",
            "out_pointer.dtype.element_ty), mask=rows < count",
            "out_pointer.dtype.element_ty)",
        ),
        large("offsets in 32 bits", "tl.arange(0, ROWS)).to(tl.int64)", "tl.arange(0, ROWS))"),
    ),
    speeds=(Speed("16384 x 16384, fp32", {"rows": 16384, "width": 16384}, bar=1.05, work=work),),
)
