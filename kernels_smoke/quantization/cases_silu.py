"""What the suite runs for SwiGLU with quantisation, and what it expects."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.quantization import reference
from kernels_smoke.quantization.inputs import (
    BOUND_IGNORED,
    BOUND_OF_ZERO,
    DTYPES,
    GREATEST,
    GROUP_LAYOUTS,
    GROUP_RESULTS,
    INFINITE_SCALE,
    LEAST_DROPPED,
    MULTIPLIED,
    NOT_CLAMPED,
    RANGE_OF_FNUZ,
    ROW_LAYOUTS,
    call,
    case,
    described,
    draw_bound,
    draw_matrix,
    result_layout,
    row_factors,
    work,
)
from kernels_smoke.suite.compare import Codes, Relative
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Check, Inputs, Kernel, Mutant, Output, Speed, Tensors

ACTIVATION = "kernels_smoke.quantization.activation"
LEAST = 1 / (448 * 512)
LEAST_GROUP = 1e-10


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = torch.bfloat16,
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


def draw_rows(draw: Draw, *, bound: float | None = None, **shape: Any) -> Inputs:
    """The same and the bound."""
    return {**draw_inputs(draw, **shape), "bound": draw_bound(draw, bound)}


def draw_groups(draw: Draw, *, group: int = 128, **shape: Any) -> Inputs:
    """The same and the groups."""
    return {**draw_inputs(draw, **shape), "group": group}


def row_outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Codes for half of ``x``, and a scale for each row."""
    rows, both = inputs["x"].shape
    return described(inputs, rows, both // 2)


def group_outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Codes for half of ``x``, and a scale for each group."""
    rows, both = inputs["x"].shape
    return described(inputs, rows, both // 2, both // 2 // inputs["group"])


@contextlib.contextmanager
def overflowing() -> Iterator[None]:
    """Triton's interpreter uses numpy, which warns where exp(-gate) or a product becomes infinite, as is meant."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        yield


def launch_rows(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    function = module.silu_and_mul_dynamic_per_token_quant
    with overflowing():
        return call(function, inputs, outputs, inputs["x"], scale_upper_bound=inputs["bound"])


def launch_groups(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    with overflowing():
        return call(module.silu_and_mul_per_block_quant, inputs, outputs, inputs["x"], group=inputs["group"])


def row_reference(inputs: Inputs) -> Tensors:
    """Quotients and scales in high precision."""
    codes, scales = reference.by_row(reference.silu_and_mul(inputs["x"]), LEAST, inputs["bound"])
    return {"codes": codes, "scales": scales}


def group_reference(inputs: Inputs) -> Tensors:
    """Quotients and scales in high precision."""
    codes, scales = reference.by_group(reference.silu_and_mul(inputs["x"]), inputs["group"], LEAST_GROUP)
    return {"codes": codes, "scales": scales.T if inputs["column_major"] else scales}


CHECKS: Mapping[str, Check] = {"codes": Codes(), "scales": Relative(1e-6)}
MUTANTS = (
    Mutant("sign of the exponent", "tl.exp(-gate)", "tl.exp(gate)", module=ACTIVATION),
    Mutant("sigmoid instead of SiLU", "return gate * (", "return (", module=ACTIVATION),
    LEAST_DROPPED,
    INFINITE_SCALE,
    RANGE_OF_FNUZ,
    MULTIPLIED,
)

PER_TOKEN = Kernel(
    name="silu_and_mul_dynamic_per_token_quant",
    module="kernels_smoke.quantization.silu_and_mul_dynamic_per_token_quant",
    inputs=draw_rows,
    outputs=row_outputs,
    launch=launch_rows,
    reference=row_reference,
    checks=CHECKS,
    # A code may differ where float32 falls on the other side of a tie: so there are at least 4000 in a case on a GPU.
    cases=(
        case("12288 wide", "quick", rows=80, width=12288),
        *(
            case(f"{width} wide", rows=rows, width=width)
            for rows, width in ((7, 1), (37, 127), (17, 300), (7, 1025), (7, 4097), (7, 5137), (7, 14336), (7, 32768))
        ),
        case("no row", "full", EVERYWHERE, rows=0, width=128, dtype=torch.float32),
        case("one row", rows=1, width=4096),
        case("strided rows", rows=7, width=1000, row_stride=2048),
        case("misaligned rows", rows=7, width=1000, row_stride=2001),
        case("fp16", rows=7, width=4096, dtype=torch.float16),
        case("values of 1e4", rows=7, width=4096, scale=1e4),
        case("near the greatest bf16", rows=7, width=4096, scale=GREATEST["bf16"] / 8),
        case("rows beyond 2^31 elements", "deep", rows=3, width=4096, row_stride=2**30 + 8),
        *(
            case(f"{name}, {width} wide", "full", EVERYWHERE, rows=17, width=width, dtype=DTYPES[name], row_stride=1040)
            for name in ("fp32", "fp16")
            for width in (300, 512)
        ),
        case("fp32, contiguous", "full", EVERYWHERE, rows=17, width=300, dtype=torch.float32),
        case("fp16 near the greatest", "full", EVERYWHERE, rows=17, width=300, dtype=torch.float16, scale=8e3),
        case("fp32 near the greatest", "full", EVERYWHERE, rows=17, width=300, dtype=torch.float32, scale=4e37),
        case("upper bound", "full", EVERYWHERE, rows=17, width=300, dtype=torch.float32, bound=1.25),
        case("its own results", "full", EVERYWHERE, rows=7, width=300, dtype=torch.float16, own=True),
        case("upper bound of zero", "full", EVERYWHERE, rows=7, width=300, dtype=torch.float32, bound=0.0),
        *ROW_LAYOUTS,
    ),
    mutants=(
        *MUTANTS,
        Mutant("halves exchanged", "_silu_and_mul(head_gate, head_up)", "_silu_and_mul(head_up, head_gate)"),
        Mutant("second half after the head", "ups = gates + width", "ups = gates + HEAD"),
        Mutant(
            "maximum of the head alone",
            "tl.maximum(tl.max(tl.abs(head_product)), tl.max(tl.abs(tail_product)))",
            "tl.max(tl.abs(head_product))",
        ),
        Mutant(
            "mask of the tail's loads dropped",
            "tail_gate = tl.load(gates + tail, mask=inside, other=0.0, eviction_policy=EVICTION)\n"
            "    tail_up = tl.load(ups + tail, mask=inside, other=0.0, eviction_policy=EVICTION)",
            "tail_gate = tl.load(gates + tail, eviction_policy=EVICTION)\n"
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
        BOUND_OF_ZERO,
        BOUND_IGNORED,
        NOT_CLAMPED,
    ),
    speeds=(Speed("16384 x 12288", {"rows": 16384, "width": 12288}, bar=1.25, work=work),),
)

PER_BLOCK = Kernel(
    name="silu_and_mul_per_block_quant",
    module="kernels_smoke.quantization.silu_and_mul_per_block_quant",
    inputs=draw_groups,
    outputs=group_outputs,
    launch=launch_groups,
    reference=group_reference,
    checks=CHECKS,
    cases=(
        case("12288 wide", "quick", rows=80, width=12288),
        *(case(f"{width} wide", rows=37, width=width) for width in (128, 384, 5120)),
        *(case(f"groups of {group}", rows=137, width=3 * group, group=group) for group in (1, 16, 64, 1024)),
        case("no row", "full", EVERYWHERE, rows=0, width=256, dtype=torch.float32),
        case("one row", rows=1, width=4096),
        case("strided rows", rows=7, width=1024, row_stride=2056),
        case("misaligned rows", rows=7, width=1024, row_stride=2049),
        case("column-major scales", rows=37, width=1024, column_major=True),
        case("fp16", rows=7, width=4096, dtype=torch.float16),
        case("values of 1e4", rows=7, width=4096, scale=1e4),
        case("near the greatest bf16", rows=7, width=4096, scale=GREATEST["bf16"] / 8),
        case("rows beyond 2^31 elements", "deep", rows=3, width=4096, row_stride=2**30 + 8),
        *(
            case(f"{name}, {width} wide", "full", EVERYWHERE, rows=17, width=width, dtype=DTYPES[name], row_stride=1040)
            for name in ("fp32", "fp16")
            for width in (384, 512)
        ),
        case("more groups than a tile", "full", EVERYWHERE, rows=3, width=41 * 128, dtype=torch.float32),
        case("fp16 near the greatest", "full", EVERYWHERE, rows=17, width=384, dtype=torch.float16, scale=8e3),
        case("fp32 near the greatest", "full", EVERYWHERE, rows=17, width=384, dtype=torch.float32, scale=4e37),
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
    ),
    mutants=(
        *MUTANTS,
        *GROUP_RESULTS,
        Mutant("halves exchanged", "_silu_and_mul(gate, up)", "_silu_and_mul(up, gate)"),
        Mutant("second half after the tile", "gates + group_count * GROUP", "gates + GROUPS * GROUP"),
        Mutant("greatest value instead of magnitude", "tl.max(tl.abs(product)", "tl.max((product)"),
        Mutant("stride of the wrong tensor", "x_pointer + rows * x_stride", "x_pointer + rows * codes_stride"),
        Mutant("scale of the next group", "+ groups * scales_group_stride", "+ (groups + 1) * scales_group_stride"),
        Mutant("scales as if row-major", "groups * scales_group_stride", "groups"),
        Mutant("rows of the tile forgotten", "tile // across * ROWS", "tile // across"),
        Mutant("groups of the tile forgotten", "tile % across * GROUPS", "tile % across"),
    ),
    speeds=(Speed("16384 x 12288", {"rows": 16384, "width": 12288}, bar=1.10, work=work),),
)

KERNELS = {kernel.name: kernel for kernel in (PER_TOKEN, PER_BLOCK)}
