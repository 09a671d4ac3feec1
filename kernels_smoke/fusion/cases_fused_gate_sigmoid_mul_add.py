"""What the suite runs for ``fused_gate_sigmoid_mul_add``, and what it expects."""

import math

import torch

from kernels_smoke.fusion import reference
from kernels_smoke.fusion.cases_shared import FAR, WIDTHS, large
from kernels_smoke.suite.correctness.compare import Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, Work, big, case, far, here


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = BF16,
    weight_dtype: torch.dtype | None = None,
    scale: float = 1.0,
    logit: float = 1.0,
    padding: tuple[int, int, int] = (0, 0, 0),
) -> Inputs:
    """Draw final, x and shared [rows, width] with the standard deviation ``scale``, and weight [width].

    ``logit`` is the standard deviation of the dot products. ``padding``: how many elements the rows of the three are
    further apart than they are wide.
    """
    names = ("final", "x", "shared")
    drawn = {
        name: draw.rows(rows, width, dtype=dtype, scale=scale, row_stride=width + more, name=name)
        for name, more in zip(names, padding, strict=True)
    }
    weight_scale = logit / (scale * math.sqrt(width))
    weight = draw.normal(width, dtype=weight_dtype or dtype, scale=weight_scale, name="weight")
    return {**drawn, "weight": weight}


def work(inputs: Inputs, _outputs: Tensors) -> Work:
    """Four inputs; ``final`` is written, too."""
    return Work(bytes=sum(tensor.nbytes for tensor in inputs.values()) + inputs["final"].nbytes)


CASES = (
    case("4096 wide", "quick", rows=257, width=4096),
    here("fp16, 127 wide, strided rows", "quick", rows=5, width=127, dtype=FP16, padding=(16, 32, 48)),
    *(case(f"{width} wide", rows=7, width=width) for width in WIDTHS),
    big("70,001 rows", rows=70_001, width=1025),
    case("as wide as is allowed", rows=3, width=16384),
    case("several tiles of narrow rows", rows=1025, width=128),
    case("strided rows", rows=7, width=1000, padding=(24, 40, 8)),
    case("no row", rows=0, width=128),
    case("one row", rows=1, width=4096),
    case("values of 1e4", rows=7, width=4096, scale=1e4),
    # So many rows that one whose product is near zero is no false alarm (two of 3,000 draws of seven rows were): of
    # terms of 1e4, float32 keeps three digits of it, and a tenth of the row's elements are rounded otherwise.
    case("gates of 0 and 1", rows=24, width=4096, logit=1e4),
    case("weight in fp32", rows=33, width=4096, weight_dtype=FP32),
    here("fp32, 512 wide", rows=5, width=512, dtype=FP32),
    here("fp32, 300 wide, strided rows", rows=5, width=300, dtype=FP32, padding=(4, 20, 0)),
    here("fp32, one column", rows=7, width=1, dtype=FP32),
    here("fp32, values of 1e4", rows=3, width=300, dtype=FP32, scale=1e4),
    here("fp16, values of 1e4", rows=3, width=300, dtype=FP16, scale=1e4),
    here("fp16, weight in fp32", rows=5, width=1025, dtype=FP16, weight_dtype=FP32),
    here("fp16, gates close to 0 and 1", rows=7, width=300, dtype=FP16, logit=20.0),
    here("fp16, no row", rows=0, width=300, dtype=FP16),
    far("offsets above 2^31", rows=3, width=1000, padding=(FAR, FAR, FAR)),
    *(
        case(f"sweep: {rows} x {width}, {str(dtype)[6:]}", "deep", rows=rows, width=width, dtype=dtype)
        for dtype in (BF16, FP16, FP32)
        for rows, width in ((4096, 128), (1023, 1024), (1024, 2880), (513, 8192))
    ),
)

MUTANTS = (
    Mutant(
        "loads without a mask for columns",
        "x = tl.load(x_pointer + rows * x_stride + columns, mask=mask",
        "x = tl.load(x_pointer + rows * x_stride + columns, mask=rows < count",
    ),
    Mutant(
        "a store without a mask for columns",
        "final_pointer.dtype.element_ty), mask=mask",
        "final_pointer.dtype.element_ty), mask=rows < count",
    ),
    Mutant("the last row omitted", "(rows < count) &", "(rows < count - 1) &"),
    Mutant(
        "no sigmoid",
        "gate = tl.sigmoid(tl.sum(x.to(tl.float32) * weight.to(tl.float32), axis=1, keep_dims=True))",
        "gate = tl.sum(x.to(tl.float32) * weight.to(tl.float32), axis=1, keep_dims=True)",
    ),
    Mutant("nothing added to", "final.to(tl.float32) + gate", "gate"),
    Mutant(
        "the product rounded before the sum",
        "gate * shared.to(tl.float32)",
        "(gate * shared.to(tl.float32)).to(final_pointer.dtype.element_ty)",
    ),
    Mutant("x gated instead of the shared output", "gate * shared.to(tl.float32)", "gate * x.to(tl.float32)"),
    Mutant(
        "stride of the wrong tensor", "shared_pointer + rows * shared_stride", "shared_pointer + rows * final_stride"
    ),
    large("offsets in 32 bits", "tl.arange(0, ROWS)[:, None]).to(tl.int64)", "tl.arange(0, ROWS)[:, None])"),
)

KERNEL = Kernel(
    name="fused_gate_sigmoid_mul_add",
    module="kernels_smoke.fusion.fused_gate_sigmoid_mul_add",
    inputs=draw_inputs,
    outputs=lambda _inputs: {},
    launch=lambda module, inputs, _outputs: module.fused_gate_sigmoid_mul_add(**inputs),
    reference=lambda inputs: {"final": reference.gate_sigmoid_mul_add(**inputs)},
    checks={"final": Rounded(floor=0.1)},  # a row of one element may cancel: its error is that of the summands
    cases=CASES,
    mutants=MUTANTS,
    speeds=(Speed("8192 x 4096", {"rows": 8192, "width": 4096}, bar=1.10, work=work),),
    modifies=("final",),
)
