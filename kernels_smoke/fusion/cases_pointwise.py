"""What the suite runs for ``mul_add_sigmoid`` and ``sin_and_cos``, and what it expects."""

from collections.abc import Mapping
from types import ModuleType

import torch

from kernels_smoke.fusion import reference
from kernels_smoke.fusion.cases_shared import FAR, MANY, POINTWISE_MUTANTS, WIDTHS, InChunks
from kernels_smoke.suite.correctness.compare import Rounded
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, far, here


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Every input once, every output once."""
    tensors = [value for value in (*inputs.values(), *outputs.values()) if isinstance(value, torch.Tensor)]
    return Work(bytes=sum(tensor.nbytes for tensor in tensors))


def draw_three(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = BF16,
    scale: float = 1.0,
    positive: bool = False,
    row_stride: int = 0,
    w_stride: int = 0,
    b_stride: int = 0,
    out_stride: int = 0,
) -> Inputs:
    """Draw x, w and b [rows, width], whose rows are ``row_stride``, ``w_stride`` and ``b_stride`` elements apart."""
    x = draw.rows(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name="x")
    w = draw.rows(rows, width, dtype=dtype, row_stride=w_stride, name="w")
    b = draw.rows(rows, width, dtype=dtype, scale=scale, row_stride=b_stride, name="b")
    if positive and x.device.type != "meta":
        for tensor in (x, w, b):
            tensor.abs_()
    return {"x": x, "w": w, "b": b, "out_stride": out_stride}


def launch_mul_add_sigmoid(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.mul_add_sigmoid(inputs["x"], inputs["w"], inputs["b"], out=outputs["activated"])


MUL_ADD_SIGMOID = Kernel(
    name="mul_add_sigmoid",
    module="kernels_smoke.fusion.mul_add_sigmoid",
    inputs=draw_three,
    outputs=lambda inputs: {"activated": (tuple(inputs["x"].shape), inputs["x"].dtype, inputs["out_stride"])},
    launch=launch_mul_add_sigmoid,
    reference=lambda inputs: {"activated": reference.mul_add_sigmoid(inputs["x"], inputs["w"], inputs["b"])},
    checks={"activated": InChunks(Rounded())},
    cases=(
        case("a million", "quick", rows=1024, width=1024),
        here("fp16, 127 wide, strided rows", "quick", rows=7, width=127, dtype=FP16, row_stride=160),
        *(case(f"{width} wide", rows=7, width=width) for width in WIDTHS),
        case("strided rows", rows=7, width=1000, row_stride=1024, out_stride=1008),
        big("70,001 strided rows", rows=70_001, width=1000, row_stride=1024, out_stride=1008),
        big("1,000,003 wide", rows=3, width=1_000_003),
        case("no row", rows=0, width=128),
        case("values of 1e4", rows=7, width=4096, scale=1e4),
        case("values of 1e18", rows=7, width=4096, scale=1e18),
        here("fp32, one element", rows=1, width=1, dtype=FP32),
        here("fp32, 5137 wide", rows=2, width=5137, dtype=FP32),
        here("fp32, 300 wide, strided result", rows=5, width=300, dtype=FP32, out_stride=304),
        here(
            "fp16, 300 wide, each at its own stride",
            rows=5,
            width=300,
            dtype=FP16,
            row_stride=304,
            w_stride=307,
            b_stride=320,
            out_stride=333,
        ),
        here("fp16, small results", rows=3, width=300, dtype=FP16, scale=6.0),
        here("fp16, 1025 wide", rows=3, width=1025, dtype=FP16),
        here("fp16, values of 1e4", rows=3, width=300, dtype=FP16, scale=1e4, positive=True),
        here("fp16, no row", rows=0, width=128, dtype=FP16),
        far("row offsets above 2^31 in", rows=3, width=5137, row_stride=FAR),
        far("row offsets above 2^31 out", rows=3, width=5137, out_stride=FAR),
        case("more than 2^31 elements", "deep", rows=1, width=MANY),
    ),
    mutants=(
        Mutant("the product rounded before the sum", "x * w + b", "(x * w).to(x_pointer.dtype.element_ty) + b"),
        Mutant("b omitted", "x * w + b", "x * w"),
        Mutant("a sigmoid that cancels", "tl.sigmoid(x * w + b)", "1.0 - 1.0 / (1.0 + tl.exp(x * w + b))"),
        Mutant("a sigmoid that overflows", "tl.sigmoid(x * w + b)", "tl.exp(x * w + b) / (1.0 + tl.exp(x * w + b))"),
        Mutant("a store without a mask", "out_pointer.dtype.element_ty), mask=mask", "out_pointer.dtype.element_ty)"),
        Mutant("the last column omitted", "mask = columns < width", "mask = columns < width - 1"),
        Mutant("stride of the wrong input", "x_pointer + row * x_stride", "x_pointer + row * w_stride"),
        Mutant("stride of b for w", "w_pointer + row * w_stride", "w_pointer + row * b_stride"),
        Mutant("stride of w for b", "b_pointer + row * b_stride", "b_pointer + row * w_stride"),
        Mutant("stride of the wrong result", "out_pointer + row * out_stride", "out_pointer + row * w_stride"),
        *POINTWISE_MUTANTS,
    ),
    speeds=(Speed("2^28 elements", {"rows": 16384, "width": 16384}, bar=1.05, work=work),),
)


def draw_angles(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = FP32,
    scale: float = 1.0,
    largest: float = 0.0,
    outlier: float = 0.0,
    row_stride: int = 0,
    out_stride: int = 0,
    cosine_stride: int = 0,
) -> Inputs:
    """Draw x [rows, width]; with ``outlier``, one element is that. ``cosine_stride``: ``out_stride`` when 0."""
    x = draw.rows(rows, width, dtype=dtype, scale=scale, largest=largest, row_stride=row_stride, name="x")
    if outlier and x.device.type != "meta":
        x[0, width // 3] = outlier
    return {"x": x, "out_stride": out_stride, "cosine_stride": cosine_stride or out_stride}


def angle_outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Both results look like ``x``, and have rows ``out_stride`` and ``cosine_stride`` elements apart."""
    shape, dtype = tuple(inputs["x"].shape), inputs["x"].dtype
    return {"sine": (shape, dtype, inputs["out_stride"]), "cosine": (shape, dtype, inputs["cosine_stride"])}


def reference_sin_and_cos(inputs: Inputs) -> Tensors:
    """Both results in high precision."""
    sine, cosine = reference.sin_and_cos(inputs["x"])
    return {"sine": sine, "cosine": cosine}


SIN_AND_COS = Kernel(
    name="sin_and_cos",
    module="kernels_smoke.fusion.sin_and_cos",
    inputs=draw_angles,
    outputs=angle_outputs,
    launch=lambda module, inputs, outputs: module.sin_and_cos(inputs["x"], out=(outputs["sine"], outputs["cosine"])),
    reference=reference_sin_and_cos,
    checks={"sine": InChunks(Rounded()), "cosine": InChunks(Rounded())},
    cases=(
        case("a million", "quick", rows=1024, width=1024),
        here("fp32, up to 1e4", "quick", rows=3, width=1025, largest=1e4),
        *(case(f"{width} wide", rows=7, width=width, largest=1e4) for width in WIDTHS),
        case("strided rows", rows=7, width=1000, row_stride=1024, out_stride=1008),
        big("70,001 strided rows", rows=70_001, width=1000, row_stride=1024, out_stride=1008),
        big("1,000,003 wide", rows=3, width=1_000_003),
        case("no row", rows=0, width=128),
        case("bf16", rows=64, width=4096, dtype=BF16, scale=10.0),
        case("bf16 of any size", rows=64, width=4096, dtype=BF16, largest=3e38),
        case("any size", rows=64, width=4096, largest=3e38),
        here("fp32, 127 wide, strided rows", rows=7, width=127, row_stride=160),
        here("fp32, 300 wide, strided results", rows=5, width=300, out_stride=304),
        here("fp32, 300 wide, each at its own stride", rows=5, width=300, out_stride=304, cosine_stride=313),
        here("fp32, up to 1e6", rows=3, width=300, largest=1e6),
        here("fp32, one of 1e30 among small ones", rows=3, width=1500, outlier=1e30),
        here("fp32, one element", rows=1, width=1),
        here("fp16, up to 100", rows=3, width=300, dtype=FP16, largest=100.0),
        here("fp16, up to 65504", rows=3, width=300, dtype=FP16, largest=65504.0),
        here("fp16, no row", rows=0, width=128, dtype=FP16),
        far("row offsets above 2^31 in", rows=3, width=5137, row_stride=FAR, dtype=BF16),
        far("row offsets above 2^31 out", rows=3, width=5137, out_stride=FAR, dtype=BF16),
        case("more than 2^31 elements", "deep", rows=1, width=MANY, dtype=BF16),
    ),
    mutants=(
        Mutant("the quarter turn in two parts", "- quarters * _PART_2) - quarters * _PART_3", "- quarters * _PART_2)"),
        Mutant("large arguments on the short way", "axis=0) <= _LARGEST", "axis=0) <= 1e38"),
        Mutant("sine and cosine not exchanged", "first = tl.where(odd, cosine, sine)", "first = sine"),
        Mutant("the cosine's sign that of the sine", "((quadrant + 1) & 2)", "(quadrant & 2)"),
        Mutant("a wrong coefficient", "-1 / 720", "-1 / 270"),
        Mutant(
            "a store without a mask", "cosine_pointer.dtype.element_ty), mask=mask", "cosine_pointer.dtype.element_ty)"
        ),
        Mutant("the last column omitted", "mask = columns < width", "mask = columns < width - 1"),
        Mutant("stride of the wrong input", "x_pointer + row * x_stride", "x_pointer + row * width"),
        Mutant("sine at the cosine's stride", "sine_pointer + row * sine_stride", "sine_pointer + row * cosine_stride"),
        Mutant(
            "cosine at the sine's stride", "cosine_pointer + row * cosine_stride", "cosine_pointer + row * sine_stride"
        ),
        *POINTWISE_MUTANTS,
    ),
    speeds=(Speed("2^27 elements, fp32", {"rows": 8192, "width": 16384}, bar=1.05, work=work),),
)
