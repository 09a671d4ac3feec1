"""What the suite runs for scaled_mm, and what it expects."""

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.matmul import reference
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Case, Inputs, Kernel, Mutant, Output, Speed, Tensors, Work, big, case, far, here

FP8 = torch.float8_e4m3fn
TILES = "kernels_smoke.matmul.tiles"
SMALL = "a GPU stores so small a result without a descriptor"


def draw_operands(
    draw: Draw,
    *,
    m: int,
    n: int,
    k: int,
    dtype: torch.dtype = FP8,
    out_dtype: torch.dtype = BF16,
    a_stride: int = 0,
    b_stride: int = 0,
    out_stride: int = 0,
    values: float = 1.0,
    whole: bool = False,
) -> dict[str, Any]:
    """Draw a [m, k] and b [n, k], which is passed transposed.

    ``a_stride``, ``b_stride`` and ``out_stride`` are elements from one row to the next. ``values`` is the standard
    deviation of the elements, or with ``whole`` their greatest magnitude.
    """
    if whole:
        low, high = -int(values), int(values) + 1
        a = draw.place(draw.integers(m, k, low=low, high=high, dtype=FP32).to(dtype), row_stride=a_stride, name="a")
        b = draw.place(draw.integers(n, k, low=low, high=high, dtype=FP32).to(dtype), row_stride=b_stride, name="b")
    else:
        a = draw.normal(m, k, dtype=dtype, scale=values, row_stride=a_stride, name="a")
        b = draw.normal(n, k, dtype=dtype, scale=values, row_stride=b_stride, name="b")
    return {"a": a, "b": b, "out_dtype": out_dtype, "out_stride": out_stride}


def draw_inputs(
    draw: Draw,
    *,
    m: int,
    n: int,
    k: int,
    values: float = 1.0,
    scales: float = 0.1,
    scalars: bool = False,
    scale_strides: tuple[int, int] = (1, 1),
    bias: torch.dtype | None = None,
    **operands: Any,
) -> Inputs:
    """Draw the operands, their scales and the bias.

    ``scales`` is the greatest scale, and ``scale_strides`` are elements from one scale to the next. The scale of the
    middle row is zero, where there are three or more.
    """
    drawn = draw_operands(draw, m=m, n=n, k=k, values=values, **operands)
    counts = (1, 1) if scalars else (m, n)
    scale_a, scale_b = (
        draw.uniform(count, 1, low=scales / 10, high=scales, dtype=FP32, row_stride=stride, name=name)
        for name, count, stride in zip(("scale_a", "scale_b"), counts, scale_strides, strict=True)
    )
    if m >= 3 and not scalars and scale_a.device.type != "meta":
        scale_a[m // 2] = 0
    size = (values * scales) ** 2 * k**0.5 / 4  # near that of the products, so that neither hides the other
    made = None if bias is None else draw.normal(n, dtype=bias, scale=size, name="bias")
    return {**drawn, "scale_a": scale_a, "scale_b": scale_b.t(), "bias": made}


def outputs(inputs: Inputs) -> Mapping[str, Output]:
    """The product [m, n]."""
    return {"out": ((inputs["a"].shape[0], inputs["b"].shape[0]), inputs["out_dtype"], inputs["out_stride"])}


def arguments(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """``a``, ``b``, ``scale_a`` and ``scale_b`` as they are passed: ``b`` column-major."""
    return inputs["a"], inputs["b"].t(), inputs["scale_a"], inputs["scale_b"]


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.scaled_mm(*arguments(inputs), bias=inputs["bias"], out=outputs["out"])


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Everything touched once, and a multiplication and an addition for each element of K."""
    a, b = inputs["a"], inputs["b"]
    read = a.nbytes + b.nbytes + inputs["scale_a"].nbytes + inputs["scale_b"].nbytes
    return Work(bytes=read + outputs["out"].nbytes, flops=2 * a.shape[0] * a.shape[1] * b.shape[0], unit="fp8")


def cublas(inputs: Inputs, outputs: Tensors) -> object:
    """The same product by cuBLAS, with its fast accumulation, which is the one that this kernel has."""
    out = outputs["out"]
    # The private function is that of all torch since 2.6; the public one, of torch 2.10 and newer, has no `out`.
    return torch._scaled_mm(  # noqa: SLF001  # see above
        *arguments(inputs), out_dtype=out.dtype, use_fast_accum=True, out=out
    )


def small(name: str, level: Any = "full", **shape: Any) -> Case:
    """A case for the interpreter, too: float16 in, float32 out."""
    return here(name, level, **{"dtype": FP16, "out_dtype": FP32, **shape})


# Cases of both products, and faults in what they do alike.
COMMON_CASES = (
    case("300 x 500, K 1040", "quick", m=300, n=500, k=1040),
    case("no row", m=0, n=128, k=128),
    case("no column", m=128, n=0, k=128),
    case("one element", m=1, n=1, k=1),
    case("odd widths: pointers", m=127, n=300, k=1025),
    case("strided rows", m=300, n=130, k=500, a_stride=512, b_stride=528),
    case("strided rows: pointers", m=300, n=130, k=500, a_stride=517, b_stride=523),
    big("300 x 528, K 8,208", m=300, n=528, k=8208),
    case("near-max values", m=130, n=256, k=1024, values=300.0),
    case("scales of 1e4", m=130, n=256, k=1024, scales=1e4),
    far("a row beyond 2^31 elements", m=3, n=130, k=512, a_stride=2**30 + 512),
    far("a row beyond 2^31 elements: pointers", m=3, n=130, k=512, a_stride=2**30 + 511),
    *(
        case(f"{m} x {n}, K {k}", "deep", m=m, n=n, k=k)
        for m in (3, 33, 129, 1025, 4097)
        for n in (16, 1025, 5137)
        for k in (16, 300, 4096)
    ),
)
COMMON_MUTANTS = (
    Mutant("one tile for each program", "tl.num_programs(0), flatten", "tiles_m * tiles_n, flatten"),
    Mutant(
        "columns stored beyond the last",
        "element_ty), mask=inside",
        "element_ty), mask=(offs_m < rows)[:, None]",
        TILES,
    ),
    Mutant("K not masked", "mask=inside, other=0.0", "mask=(offs_m < rows)[:, None], other=0.0", TILES),
    Mutant("last group as high as the others", "min(tiles_m - first, GROUP_M)", "GROUP_M", TILES),
)


def of_the_launch(module: str = "") -> tuple[Mutant, ...]:
    """Faults in the arguments of the launch, which is in ``module``."""
    return (
        Mutant("rows of the result taken for dense", "out.stride(0)", "n", module),
        Mutant(
            "the same, by descriptor",
            "descriptor(out, ",
            "descriptor(out.as_strided(out.shape, (n, 1)), ",
            module,
            where=("interpret",),
            why=SMALL,
        ),
    )


KERNEL = Kernel(
    name="scaled_mm",
    module="kernels_smoke.matmul.scaled_mm",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=lambda inputs: {"out": reference.scaled_mm(*arguments(inputs), bias=inputs["bias"])},
    # On Hopper, sums of fp8 products keep some 14 bits; those of 16-bit operands are rounded towards zero in float32.
    checks={"out": Near(bfloat16=4e-3, float16=4e-3, float32=1e-5)},
    cases=(
        *COMMON_CASES,
        case("16 rows", "quick", m=16, n=500, k=1040),
        *(case(f"{m} rows", m=m, n=528, k=512) for m in (1, 7, 17, 40, 64, 65)),
        case("tiles for every multiprocessor", m=1100, n=6200, k=528),
        big("33,001 x 1032, K 528", m=33_001, n=1032, k=528),
        case("the same, float16 out, bias", m=1100, n=6200, k=528, out_dtype=FP16, bias=FP16),
        case("the same, bfloat16 in", m=1100, n=6200, k=528, dtype=BF16),
        case("the same, whole numbers, float32 out", m=1100, n=6200, k=528, values=2, whole=True, out_dtype=FP32),
        case("odd widths, few rows", m=7, n=127, k=129),
        case("one scale for all, bias", m=130, n=1025, k=256, scalars=True, bias=BF16),
        case("whole numbers, float32 out", m=200, n=264, k=256, values=2, whole=True, out_dtype=FP32),
        small("float16, 70 x 76, K 96", "quick", m=70, n=76, k=96, bias=FP32),
        small("float16, odd widths: pointers", m=67, n=75, k=101, a_stride=111),
        small("float16, strided rows", m=40, n=72, k=40, a_stride=48, b_stride=56, bias=FP16),
        small("float16, few rows", m=7, n=72, k=96, bias=FP32),
        small("float16, few rows, odd widths", m=5, n=33, k=37),
        small("float16, one scale for all", m=33, n=40, k=48, scalars=True),
        small("float16, strided result", m=40, n=76, k=40, out_stride=80),
        small("float16, strided result: pointers", m=40, n=76, k=40, out_stride=81),
        small("float16, strided scales", m=40, n=76, k=40, scale_strides=(3, 2)),
        small("float16, values of 1e4", m=33, n=40, k=48, values=1e4, scales=1e-3),
    ),
    mutants=(
        Mutant("one scale read as many", "scale_a + offs_m * scale_a_stride", "scale_a + offs_m"),
        Mutant("row scales taken for dense", "row_scales.stride(0)", "min(row_scales.stride(0), 1)"),
        Mutant("column scales taken for dense", "column_scales.stride(1)", "min(column_scales.stride(1), 1)"),
        *of_the_launch(TILES),
        *COMMON_MUTANTS,
        Mutant("columns not scaled", "row_scale[:, None] * column_scale[None, :]", "row_scale[:, None]"),
        Mutant("bias subtracted", "result += tl.load(bias", "result -= tl.load(bias"),
        Mutant("only the last step of K", "tl.dot(left, right.T, acc)", "tl.dot(left, right.T)"),
        Mutant("both halves stored at the left", "result, row, column + half * width", "result, row, column"),
    ),
    speeds=(
        Speed(
            "8192 x 24576, K 4096",
            {"m": 8192, "n": 24576, "k": 4096},
            bar=1 / 0.90,
            work=work,
            versus="cuBLAS",
            peer=cublas,
        ),
        Speed(
            "16 x 24576, K 4096",
            {"m": 16, "n": 24576, "k": 4096},
            bar=0.93,
            work=work,
            versus="cuBLAS",
            peer=cublas,
            slack=3.0,
        ),
    ),
    matrix_instructions=True,
)
