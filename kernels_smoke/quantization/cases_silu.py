"""What the suite runs for SwiGLU with quantisation, and what it expects."""

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import torch

from kernels_smoke.quantization import reference
from kernels_smoke.quantization.cases_shared import (
    BOUND_MUTANTS,
    COMMON_MUTANTS,
    DTYPES,
    FUSED_GROUP_CASES,
    FUSED_ROW_CASES,
    GREATEST,
    GROUP_MUTANTS,
    INFINITE_SCALE,
    LEAST,
    TILE_CASES,
    TILE_MUTANTS,
    WRONG_STRIDE,
    by_groups,
    by_rows,
    draw_matrix,
    given_scales,
    launcher,
    outputs,
    quantised,
    result_layout,
    row_factors,
    work,
)
from kernels_smoke.suite.correctness.compare import Codes, Relative
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Check, Inputs, Kernel, Mutant, Speed, big, case, here

ACTIVATION = "kernels_smoke.quantization.activation"
LEAST_GROUP = 1e-10


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = BF16,
    scale: float = 1.0,
    row_stride: int = 0,
    **layout: Any,
) -> Inputs:
    """Draw x [rows, 2 width]: ``width`` gates and as many factors; ``layout`` says how the results lie.

    The greatest product of the first row is its last, that of the next two rows their first; so the second, if it reads
    on into the third, finds a greater one.
    """
    x = draw_matrix(draw, rows, 2 * width, name="x", dtype=dtype, scale=scale, row_stride=row_stride)
    if x.device.type != "meta" and rows:
        x[1:3, [0, width]] = 5 * scale * row_factors(x)[1:3, None]
        x[0, [width - 1, -1]] = 6 * scale
    return {"x": x, **result_layout(**layout)}


@contextlib.contextmanager
def overflowing() -> Iterator[None]:
    """Triton's interpreter uses numpy, which warns where exp(-gate) or a product becomes infinite, as is meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


CHECKS: Mapping[str, Check] = {"codes": Codes(reach=2e-6), "scales": Relative(1e-6)}
COMMON = (
    case("12288 wide", "quick", rows=80, width=12288),
    case("near the greatest bf16", rows=7, width=4096, scale=GREATEST["bf16"] / 8),
)
MUTANTS = (
    Mutant("sign of the exponent", "tl.exp(-gate)", "tl.exp(gate)", module=ACTIVATION),
    Mutant("sigmoid instead of SiLU", "return gate * (", "return (", module=ACTIVATION),
    *COMMON_MUTANTS,
    INFINITE_SCALE,
)

PER_TOKEN = Kernel(
    name="silu_and_mul_dynamic_per_token_quant",
    module="kernels_smoke.quantization.silu_and_mul_dynamic_per_token_quant",
    inputs=by_rows(draw_inputs),
    outputs=partial(outputs, halves=2),
    launch=overflowing()(launcher("silu_and_mul_dynamic_per_token_quant")),
    reference=lambda inputs: quantised(reference.silu_and_mul(inputs["x"]), inputs, LEAST),
    checks=CHECKS,
    given=given_scales,
    cases=(
        *COMMON,
        *FUSED_ROW_CASES,
        big("70,001 rows", rows=70_001, width=1025),
        *(
            case(f"{width} wide", rows=rows, width=width)
            for rows, width in ((7, 1), (37, 127), (17, 300), (7, 1025), (7, 4097), (7, 5137), (7, 14336), (7, 32768))
        ),
        case("strided rows", rows=7, width=1000, row_stride=2048),
        case("misaligned rows", rows=7, width=1000, row_stride=2001),
        *(
            here(f"{name}, {width} wide", rows=17, width=width, dtype=DTYPES[name], row_stride=1040)
            for name in ("fp32", "fp16")
            for width in (300, 512)
        ),
        here("fp32, contiguous", rows=17, width=300, dtype=FP32),
        here("fp16 near the greatest", rows=17, width=300, dtype=FP16, scale=8e3),
        here("fp32 near the greatest", rows=17, width=300, dtype=FP32, scale=4e37),
    ),
    mutants=(
        *MUTANTS,
        *BOUND_MUTANTS,
        Mutant("halves exchanged", "_silu_and_mul(head_gate, head_up)", "_silu_and_mul(head_up, head_gate)"),
        Mutant("second half after the head", "ups = gates + width", "ups = gates + HEAD"),
        Mutant(
            "maximum of the head alone",
            "tl.maximum(tl.max(tl.abs(head_product)), tl.max(tl.abs(tail_product)))",
            "tl.max(tl.abs(head_product))",
        ),
        Mutant(
            "mask of the tail's loads dropped",
            "tail_gate = tl.load(gates + tail, mask=inside, other=0.0, eviction_policy=EVICTION)  # [TAIL]\n"
            "    tail_up = tl.load(ups + tail, mask=inside, other=0.0, eviction_policy=EVICTION)",
            "tail_gate = tl.load(gates + tail, eviction_policy=EVICTION)  # [TAIL]\n"
            "    tail_up = tl.load(ups + tail, eviction_policy=EVICTION)",
        ),
        Mutant(
            "mask of the tail's store dropped",
            "_quotients(tail_product, scale).to(codes_pointer.dtype.element_ty), mask=inside)",
            "_quotients(tail_product, scale).to(codes_pointer.dtype.element_ty))",
        ),
        Mutant("stride of the wrong tensor", "x_pointer + row * x_stride", "x_pointer + row * codes_stride"),
        Mutant("codes taken for dense", "row * codes_stride", "row * width"),
        Mutant("scales taken for dense", "scales_pointer + row * scales_stride", "scales_pointer + row"),
    ),
    speeds=(Speed("16384 x 12288", {"rows": 16384, "width": 12288}, bar=1.12, work=work),),
)

PER_BLOCK = Kernel(
    name="silu_and_mul_per_block_quant",
    module="kernels_smoke.quantization.silu_and_mul_per_block_quant",
    inputs=by_groups(draw_inputs),
    outputs=partial(outputs, halves=2),
    launch=overflowing()(launcher("silu_and_mul_per_block_quant")),
    reference=lambda inputs: quantised(reference.silu_and_mul(inputs["x"]), inputs, LEAST_GROUP),
    checks=CHECKS,
    given=given_scales,
    cases=(
        *COMMON,
        *FUSED_GROUP_CASES,
        big("70,001 rows", rows=70_001, width=384),
        big("16,385 rows of 5,120", rows=16_385, width=5120),
        case("strided rows", rows=7, width=1024, row_stride=2056),
        case("misaligned rows", rows=7, width=1024, row_stride=2049),
        *(
            here(f"{name}, {width} wide", rows=17, width=width, dtype=DTYPES[name], row_stride=1040)
            for name in ("fp32", "fp16")
            for width in (384, 512)
        ),
        *TILE_CASES,
        here("fp16 near the greatest", rows=17, width=384, dtype=FP16, scale=8e3),
        here("fp32 near the greatest", rows=17, width=384, dtype=FP32, scale=4e37),
    ),
    mutants=(
        *MUTANTS,
        *GROUP_MUTANTS,
        *TILE_MUTANTS,
        WRONG_STRIDE,
        Mutant("halves exchanged", "_silu_and_mul(gate, up)", "_silu_and_mul(up, gate)"),
        Mutant("second half after the tile", "gates + group_count * GROUP", "gates + GROUPS * GROUP"),
        Mutant("greatest value instead of magnitude", "tl.max(tl.abs(product)", "tl.max((product)"),
    ),
    speeds=(Speed("16384 x 12288", {"rows": 16384, "width": 12288}, bar=1.10, work=work),),
)

KERNELS = {kernel.name: kernel for kernel in (PER_TOKEN, PER_BLOCK)}
