"""What the suite runs for newton_schulz, and what it expects."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.muon import reference
from kernels_smoke.muon.newton_schulz import COEFFICIENTS
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import EVERYWHERE, Case, Inputs, Kernel, Mutant, Speed, Tensors, Work

PRODUCT = "kernels_smoke.muon.product"
SCALED = "kernels_smoke.muon.frobenius_norm"
STEPS = 5


@dataclass(frozen=True)
class NearIterate(Near):
    """Near, but the rounding of a vector's one singular value falls on every element: ``vector``, in bfloat16."""

    vector: float = 3e-2

    def __call__(self, output: torch.Tensor, reference: torch.Tensor) -> Mapping[str, Any]:
        """Return what Near says."""
        near = Near(self.vector if 1 in output.shape[-2:] else self.bfloat16, self.float16, self.float32, self.floor)
        return near(output, reference)


def draw_inputs(
    draw: Draw,
    *,
    shape: tuple[int, ...],
    dtype: torch.dtype = BF16,
    out_dtype: torch.dtype | None = None,
    row_stride: int = 0,
    out_stride: int = 0,
    scale: float = 1.0,
    zero: bool = False,
    steps: int = STEPS,
    coefficients: tuple[float, float, float] = COEFFICIENTS,
) -> Inputs:
    """Draw ``x`` [..., m, n], whose values have the standard deviation ``scale``; ``zero``: the first matrix is zero.

    ``row_stride`` and ``out_stride`` are elements from one row of ``x`` and of the result to the next.
    """
    x = draw.normal(*shape, dtype=dtype, scale=scale, row_stride=row_stride, name="x")
    if zero and x.device.type != "meta":
        x.view(-1, *shape[-2:])[0] = 0
    options = {"steps": steps, "coefficients": coefficients}
    return {"x": x, "out_dtype": out_dtype or dtype, "out_stride": out_stride, **options}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    options = {name: inputs[name] for name in ("steps", "coefficients")}
    return module.newton_schulz(inputs["x"], out=outputs["out"], **options)


def expected(inputs: Inputs) -> Tensors:
    """The iteration in float64."""
    options = {name: inputs[name] for name in ("steps", "coefficients")}
    return {"out": reference.newton_schulz(inputs["x"], **options)}


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """For each step, the two symmetric products by halves and one whole product; x once in, once out."""
    x = inputs["x"]
    p, q = sorted(x.shape[-2:])
    flops = inputs["steps"] * (p * p * q + p * p * p + 2 * p * p * q) * (x.numel() // (p * q))
    return Work(bytes=x.nbytes + outputs["out"].nbytes, flops=flops)


def case(
    name: str, *shape: int, level: Any = "full", where: Any = ("cuda",), checked: bool = True, **more: Any
) -> Case:
    """A case, without the noise."""
    return Case(name, {"shape": shape, **more}, level, where, checked)


def small(name: str, *shape: int, level: Any = "full", **more: Any) -> Case:
    """A case for the interpreter, too: float16."""
    return case(name, *shape, level=level, where=EVERYWHERE, **{"dtype": FP16, **more})


KERNEL = Kernel(
    name="newton_schulz",
    module="kernels_smoke.muon.newton_schulz",
    inputs=draw_inputs,
    outputs=lambda inputs: {"out": (tuple(inputs["x"].shape), inputs["out_dtype"], inputs["out_stride"])},
    launch=launch,
    reference=expected,
    # Five steps amplify the rounding of each product where singular values are small. 1.9e-2 is what eager torch has at
    # 4096 x 4096 (ours 8.3e-3; vectors 2.6e-2, eager 7.5e-2; hundreds of runs on an H200). float16 has three more bits,
    # but is drawn for tiny matrices, too, where chance has more to say; below the floor its iterate is subnormal.
    checks={"out": NearIterate(bfloat16=1.9e-2, float16=6e-3, floor=1e-5)},
    cases=(
        case("256 x 640", 256, 640, level="quick"),
        case("2048 x 2048", 2048, 2048),
        case("640 x 256: transposed", 640, 256),
        case("12 of 64 x 768", 12, 64, 768),
        case("2 x 3 of 128 x 128", 2, 3, 128, 128),
        case("2 of 1408 x 2048, the first zero", 2, 1408, 2048, zero=True),
        case("127 x 1025", 127, 1025),
        case("256 x 16,384", 256, 16_384, checked=False),
        case("3,001 of 64 x 768", 3001, 64, 768, checked=False),
        case("5137 x 300", 5137, 300),
        case("strided rows", 300, 500, row_stride=517, out_stride=523),
        case("float32 in, bfloat16 out", 300, 512, dtype=FP32, out_dtype=BF16),
        case("float16, 1025 x 2047", 1025, 2047, dtype=FP16),
        case("values of 1e4", 300, 512, scale=1e4),
        case("values of 1e-4", 300, 512, scale=1e-4),
        case("no matrix", 0, 64, 64),
        case("no row", 0, 64),
        case("one element", 1, 1),
        *(
            case(f"{rows} x {columns}, {str(dtype)[6:]}", rows, columns, level="deep", dtype=dtype)
            for dtype in (BF16, FP16)
            for rows in (1, 65, 1025, 4096)
            for columns in (1, 300, 4097)
        ),
        case("4096 x 12288", 4096, 12288, level="deep"),
        case("float16, 70,000 of 16 x 64", 70_000, 16, 64, level="deep", dtype=FP16),
        small("float16, 40 x 72", 40, 72, level="quick", steps=3),
        small("float16, 37 x 21: transposed", 37, 21, row_stride=24, out_stride=27),
        small("float16, 3 of 20 x 33, the first zero", 3, 20, 33, zero=True, steps=2),
        small("float16, 3 of 20 x 33, strided", 3, 20, 33, row_stride=40, out_stride=36, steps=1),
        small("float16, other coefficients", 20, 33, coefficients=(2.0, -1.5, 0.5), steps=2),
        small("float16, 1 x 5", 1, 5),
        small("float16, one step, values of 1e4", 17, 30, scale=1e4, dtype=FP32, out_dtype=FP16, steps=1),
        small("float16, no column", 3, 0),
    ),
    mutants=(
        Mutant("above the diagonal not transposed", "rounded.T, first + column", "rounded, first + column", PRODUCT),
        Mutant(
            "mirrored to the wrong place",
            "rounded.T, first + column, row,",
            "rounded.T, first + row, column,",
            PRODUCT,
        ),
        Mutant(
            "the square not added", "result += beta * more", "result += (0.0 if SYMMETRIC else beta) * more", PRODUCT
        ),
        Mutant("coefficients swapped", "alpha=c, addend=square, beta=b", "alpha=b, addend=square, beta=c"),
        Mutant("matrix not added", "addend=x, beta=a", "addend=x, beta=0.0 * a"),
        Mutant(
            "every column of tiles the first",
            "y, row, column, matrices * inner",
            "y, row, 0, matrices * inner",
            PRODUCT,
        ),
        Mutant("every matrix the first", "first = matrix * rows", "first = 0 * rows", PRODUCT),
        Mutant("triangle read off by one", "tile - row * (row + 1) // 2", "tile - row * (row - 1) // 2", PRODUCT),
        Mutant("padding not zero", "mask=inside, other=0.0", "mask=inside, other=1.0", SCALED),
        Mutant(
            "padding stored into the result",
            "element_ty), mask=inside)",
            "element_ty), mask=(offs_m < rows)[:, None])",
            PRODUCT,
        ),
        Mutant("matrices one behind another", "x + matrix * x_stride", "x + matrix * rows * columns", SCALED),
        Mutant(
            "results one behind another",
            "matrix.to(tl.int64) * stride",
            "matrix.to(tl.int64) * rows * columns",
            PRODUCT,
        ),
        Mutant("always the usual coefficients", "a, b, c = coefficients", "a, b, c = COEFFICIENTS"),
        Mutant("not scaled", "values = values / (", "values = values * 0.5 + 0.0 * (", SCALED),
        Mutant("squares of the first columns only", "first + span, COLUMNS", "first + COLUMNS, COLUMNS", SCALED),
        Mutant("the last sum of squares omitted", "number < parts", "number < parts - 1", SCALED),
        Mutant("the norm of the first matrix for all", "sums + matrix * parts", "sums", SCALED),
        Mutant("one step too few", "for step in range(steps):", "for step in range(1, steps):"),
        Mutant(
            "last group as high as the others",
            "_place(tile % count, tiles_m, tiles_n",
            "_place(tile % count, GROUP_M, tiles_n",
            PRODUCT,
        ),
    ),
    speeds=(
        # Bars: those of modded-nanogpt's kernels on an H200 (2615 and 6341 us), over the floor at 746 TF.
        Speed("4096 x 4096", {"shape": (4096, 4096)}, bar=1.33, work=work),
        Speed("4096 x 12288", {"shape": (4096, 12288)}, bar=1.35, work=work),
    ),
    matrix_instructions=True,
)
