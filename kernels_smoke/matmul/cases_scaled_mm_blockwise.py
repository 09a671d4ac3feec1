"""What the suite runs for scaled_mm_blockwise, and what it expects."""

from __future__ import annotations

from types import ModuleType

import torch

from kernels_smoke.matmul import reference
from kernels_smoke.matmul.cases_scaled_mm import BF16, FP8, FP16, FP32, SMALL, TILES, case, outputs, small, work
from kernels_smoke.suite.compare import Near
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors


def draw_inputs(
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
    scales: float = 0.1,
    row_major: bool = False,
) -> Inputs:
    """Draw a [m, k], b [n, k], which is passed transposed, and their scales.

    ``a_stride``, ``b_stride`` and ``out_stride`` are elements from one row to the next. ``values`` is the standard
    deviation of the elements, ``scales`` the greatest scale. Both scales are drawn transposed, so that they are
    column-major as torch wants them, or as they are. Those of the middle row are zero, where there are three.
    """
    a = draw.normal(m, k, dtype=dtype, scale=values, row_stride=a_stride, name="a")
    b = draw.normal(n, k, dtype=dtype, scale=values, row_stride=b_stride, name="b")
    of_a, of_b = (m, -(-k // 128)), (-(-k // 128), -(-n // 128))
    order = 1 if row_major else -1
    scale_a = draw.uniform(*of_a[::order], low=scales / 10, high=scales, dtype=FP32, name="scale_a")
    scale_b = draw.uniform(*of_b[::order], low=scales / 10, high=scales, dtype=FP32, name="scale_b")
    if m >= 3 and scale_a.device.type != "meta":
        (scale_a if row_major else scale_a.t())[m // 2] = 0
    drawn = {"a": a, "b": b, "scale_a": scale_a, "scale_b": scale_b, "row_major": row_major}
    return {**drawn, "out_dtype": out_dtype, "out_stride": out_stride}


def arguments(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """``a``, ``b``, ``scale_a`` and ``scale_b`` as they are passed: each in the order that was asked for."""
    scale_a, scale_b = inputs["scale_a"], inputs["scale_b"]
    if not inputs["row_major"]:
        scale_a, scale_b = scale_a.t(), scale_b.t()
    return inputs["a"], inputs["b"].t(), scale_a, scale_b


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.scaled_mm_blockwise(*arguments(inputs), out=outputs["out"])


def expected(inputs: Inputs) -> Tensors:
    """The product in float64."""
    return {"out": reference.scaled_mm_blockwise(*arguments(inputs))}


def torch_blockwise(inputs: Inputs, outputs: Tensors) -> object:
    """The same product by torch, which knows the kind of scaling by the scales' shapes and strides."""
    out = outputs["out"]
    # The private function is that of all torch since 2.8; the public one, of torch 2.10 and newer, has no `out`.
    return torch._scaled_mm(*arguments(inputs), out_dtype=out.dtype, out=out)  # noqa: SLF001  # see above


KERNEL = Kernel(
    name="scaled_mm_blockwise",
    module="kernels_smoke.matmul.scaled_mm_blockwise",
    inputs=draw_inputs,
    outputs=outputs,
    launch=launch,
    reference=expected,
    # On Hopper, sums of fp8 products keep some 14 bits, but only within a block: closer than scaled_mm.
    checks={"out": Near(bfloat16=2.5e-3, float16=1.5e-3, float32=1e-5)},
    cases=(
        case("300 x 500, K 1040", "quick", m=300, n=500, k=1040),
        *(case(f"{m} rows", m=m, n=528, k=512) for m in (1, 7, 17, 65)),
        case("tiles for every multiprocessor", m=1100, n=3200, k=528),
        case("the same, float16 out", m=1100, n=3200, k=528, out_dtype=FP16),
        case("the same, bfloat16 in", m=1100, n=3200, k=528, dtype=BF16),
        case("the same, float16 in, float32 out", m=1100, n=3200, k=528, dtype=FP16, out_dtype=FP32),
        case("no row", m=0, n=128, k=128),
        case("no column", m=128, n=0, k=128),
        case("one element", m=1, n=1, k=1),
        case("odd widths: pointers", m=127, n=300, k=1025),
        case("strided rows", m=300, n=130, k=500, a_stride=512, b_stride=528),
        case("strided rows: pointers", m=300, n=130, k=500, a_stride=517, b_stride=523),
        case("row-major scales", m=130, n=1025, k=640, row_major=True),
        case("near-max values", m=130, n=256, k=1024, values=300.0),
        case("scales of 1e4", m=130, n=256, k=1024, scales=1e4),
        case("a row beyond 2^31 elements", "deep", m=3, n=130, k=512, a_stride=2**30 + 512),
        case("a row beyond 2^31 elements: pointers", "deep", m=3, n=130, k=512, a_stride=2**30 + 511),
        *(
            case(f"{m} x {n}, K {k}", "deep", m=m, n=n, k=k)
            for m in (3, 33, 129, 1025, 4097)
            for n in (16, 1025, 5137)
            for k in (16, 300, 4096)
        ),
        small("float16, 36 x 160, K 272", "quick", m=36, n=160, k=272),
        small("float16, odd widths: pointers", m=19, n=75, k=300, a_stride=311),
        small("float16, few rows", m=7, n=40, k=256),
        small("float16, row-major scales", m=18, n=40, k=130, row_major=True),
        small("float16, strided result", m=18, n=76, k=130, out_stride=80),
        small("float16, strided result: pointers", m=18, n=76, k=130, out_stride=81),
        small("float16, values of 1e4", m=18, n=40, k=130, values=1e4, scales=1e-3),
    ),
    mutants=(
        Mutant("row scales of the first block only", "row_scale = next_row_scale", "row_scale = row_scale"),
        Mutant("last block not scaled", "more = depth + BLOCK < k", "more = depth + 2 * BLOCK < k"),
        Mutant("rows of the result taken for dense", "out.stride(0)", "n"),
        Mutant(
            "the same, by descriptor",
            "descriptor(out, ",
            "descriptor(out.as_strided(out.shape, (n, 1)), ",
            where=("interpret",),
            why=SMALL,
        ),
        Mutant("columns not scaled", "(row_scale * column_scale)[:, None]", "row_scale[:, None]"),
        Mutant(
            "a column scale for each tile", "column // BLOCK * scale_b_stride_n", "column // BLOCK_N * scale_b_stride_n"
        ),
        Mutant("row scales of the next row", "row_scales += scale_a_stride_k", "row_scales += scale_a_stride_m"),
        Mutant(
            "scaled after the sum",
            "accumulator += tl.dot(tile_a, tile_b.T) * ",
            "accumulator = tl.dot(tile_a, tile_b.T, accumulator) * ",
        ),
        Mutant("one tile for each program", "tl.num_programs(0), flatten", "tiles_m * tiles_n, flatten"),
        Mutant("K not masked", "mask=inside, other=0.0", "mask=(down < rows)[:, None], other=0.0", TILES),
        Mutant(
            "columns stored beyond the last",
            "element_ty), mask=inside",
            "element_ty), mask=(down < rows)[:, None]",
            TILES,
        ),
        Mutant("last group as high as the others", "min(tiles_m - first, GROUP_M)", "GROUP_M", TILES),
    ),
    speeds=(
        Speed(
            "8192 x 24576, K 4096",
            {"m": 8192, "n": 24576, "k": 4096},
            bar=1 / 0.6,
            work=work,
            versus="torch",
            peer=torch_blockwise,
        ),
    ),
    matrix_instructions=True,
)
