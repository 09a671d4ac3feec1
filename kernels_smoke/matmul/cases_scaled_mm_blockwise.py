"""What the suite runs for scaled_mm_blockwise, and what it expects."""

from typing import Any

import torch

from kernels_smoke.matmul import reference
from kernels_smoke.matmul.cases_scaled_mm import (
    COMMON_CASES,
    COMMON_MUTANTS,
    draw_operands,
    of_the_launch,
    outputs,
    small,
    work,
)
from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Kernel, Mutant, Speed, Tensors, big, case


def draw_inputs(
    draw: Draw, *, m: int, n: int, k: int, scales: float = 0.1, row_major: bool = False, **operands: Any
) -> Inputs:
    """Draw the operands and their scales, of which ``scales`` is the greatest.

    Both scales are drawn transposed, so that they are column-major as torch wants them, or as they are. Those of the
    middle row are zero, where there are three.
    """
    drawn = draw_operands(draw, m=m, n=n, k=k, **operands)
    of_a, of_b = (m, -(-k // 128)), (-(-k // 128), -(-n // 128))
    order = 1 if row_major else -1
    scale_a = draw.uniform(*of_a[::order], low=scales / 10, high=scales, dtype=FP32, name="scale_a")
    scale_b = draw.uniform(*of_b[::order], low=scales / 10, high=scales, dtype=FP32, name="scale_b")
    if m >= 3 and scale_a.device.type != "meta":
        (scale_a if row_major else scale_a.t())[m // 2] = 0
    return {**drawn, "scale_a": scale_a, "scale_b": scale_b, "row_major": row_major}


def arguments(inputs: Inputs) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """``a``, ``b``, ``scale_a`` and ``scale_b`` as they are passed: each in the order that was asked for."""
    scale_a, scale_b = inputs["scale_a"], inputs["scale_b"]
    if not inputs["row_major"]:
        scale_a, scale_b = scale_a.t(), scale_b.t()
    return inputs["a"], inputs["b"].t(), scale_a, scale_b


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
    launch=lambda module, inputs, outputs: module.scaled_mm_blockwise(*arguments(inputs), out=outputs["out"]),
    reference=lambda inputs: {"out": reference.scaled_mm_blockwise(*arguments(inputs))},
    # On Hopper, sums of fp8 products keep some 14 bits, but only within a block: closer than scaled_mm.
    checks={"out": Near(bfloat16=2.5e-3, float16=1.5e-3, float32=1e-5)},
    cases=(
        *COMMON_CASES,
        *(case(f"{m} rows", m=m, n=528, k=512) for m in (1, 7, 17, 65)),
        case("128 large tiles", m=512, n=4096, k=528),
        case("tiles for every multiprocessor", m=1100, n=3200, k=528),
        big("33,001 x 1040, K 528", m=33_001, n=1040, k=528),
        case("the same, float16 out", m=1100, n=3200, k=528, out_dtype=FP16),
        case(
            "the same, whole numbers, row-major scales, float32 out",
            m=1100,
            n=3200,
            k=528,
            values=2,
            whole=True,
            row_major=True,
            out_dtype=FP32,
        ),
        case("the same, bfloat16 in", m=1100, n=3200, k=528, dtype=BF16),
        case("the same, float16 in, float32 out", m=1100, n=3200, k=528, dtype=FP16, out_dtype=FP32),
        case("row-major scales", m=130, n=1025, k=640, row_major=True),
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
        Mutant("last block not scaled", "more = start_k + BLOCK < k", "more = start_k + 2 * BLOCK < k"),
        *of_the_launch(),
        *COMMON_MUTANTS,
        Mutant("columns not scaled", "(row_scale * column_scale)[:, None]", "row_scale[:, None]"),
        Mutant(
            "a column scale for each tile", "column // BLOCK * scale_b_stride_n", "column // BLOCK_N * scale_b_stride_n"
        ),
        Mutant("row scales of the next row", "row_scales += scale_a_stride_k", "row_scales += scale_a_stride_m"),
        Mutant(
            "scaled after the sum",
            "acc += tl.dot(tile_a, tile_b.T) * ",
            "acc = tl.dot(tile_a, tile_b.T, acc) * ",
        ),
    ),
    speeds=(
        Speed(
            "8192 x 24576, K 4096",
            {"m": 8192, "n": 24576, "k": 4096},
            bar=1.10,
            work=work,
            versus="torch",
            peer=torch_blockwise,
        ),
    ),
    matrix_instructions=True,
)
