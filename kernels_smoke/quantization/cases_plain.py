"""What the suite runs for quantisation alone, and what it expects: scales and codes to the last bit.

Divisions and products are rounded once in the definition, so the codes on a GPU have to be those of the reference.
"""

from typing import Any

import torch

from kernels_smoke.quantization.cases_shared import (
    COMMON_MUTANTS,
    DTYPES,
    GREATEST,
    GROUP_CASES,
    GROUP_MUTANTS,
    INFINITE_SCALE,
    LEAST,
    MASKS,
    ROW_CASES,
    ROW_MUTANTS,
    SCALING,
    TILE_CASES,
    TILE_MUTANTS,
    WRONG_STRIDE,
    by_rows,
    draw_matrix,
    launcher,
    outputs,
    quantised,
    result_layout,
    work,
)
from kernels_smoke.suite.correctness.compare import Codes, Exact
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Case, Inputs, Kernel, Mutant, Speed, Tensors, big, case, here

LEAST_GROUP = 1e-10 / 448
LEAST_UE8M0 = 1e-10
OUTLIER = 3e4  # next to it, values around 1 are subnormal in e4m3


def draw_rows(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = BF16,
    scale: float = 1.0,
    row_stride: int = 0,
    offset: int = 0,
    special: str = "",
    group: int = 0,
    **layout: Any,
) -> Inputs:
    """Draw x [rows, width]; ``special`` is for each row, or each ``group`` of it; ``layout``: how the results lie."""
    x = draw_matrix(draw, rows, width, name="x", dtype=dtype, scale=scale, row_stride=row_stride, offset=offset)
    if x.device.type != "meta" and rows:
        x[-1, :group] = 0
        _specialise(x, special, group)
    return {"x": x, **result_layout(**layout)}


def draw_groups(draw: Draw, *, group: int = 128, ue8m0: bool = False, **shape: Any) -> Inputs:
    """The same for groups. The last row begins with one of zeros."""
    return {**draw_rows(draw, group=group, **shape), "group": group, "ue8m0": ue8m0}


def _specialise(x: torch.Tensor, special: str, group: int = 0) -> None:
    """Overwrite elements of ``x`` with what ``special`` names, in each row, or in each ``group`` of each row."""
    firsts = x[:, :: group or x.shape[1]]
    if special == "outlier":
        firsts.fill_(OUTLIER)
    elif special == "ties":  # with a scale of 1, odd multiples of half a step lie between two codes
        x.copy_((100 * x).round().clamp(-448, 448))
        firsts.fill_(448)
    elif special == "infinity":
        x[0, 0] = -torch.inf
        x[1, -1] = torch.inf
    elif special == "greatest":
        x[1, 0] = -torch.finfo(x.dtype).max
    elif special == "powers of two":  # scales of 2^-30 to 2^30, and the next greater ones
        rows, groups = firsts.shape
        numbers = torch.arange(rows * groups, device=x.device).reshape(rows, groups)
        powers = torch.exp2((numbers // 2 % 61 - 30).double()).float()
        beyond = torch.nextafter(448 * powers, torch.full_like(powers, torch.inf))
        x.copy_(x.clamp(-1, 1) * powers.repeat_interleave(group, dim=1))
        firsts.copy_(torch.where(numbers % 2 == 0, 448 * powers, beyond))


def near_greatest(width: int) -> tuple[Case, ...]:
    """Values whose maxima come near the greatest of the dtype, and that one."""
    return tuple(
        (case if name == "bf16" else here)(
            f"near the greatest {name}", rows=5, width=width, dtype=dtype, scale=GREATEST[name] / 8, special="greatest"
        )
        for name, dtype in DTYPES.items()
    )


def group_reference(inputs: Inputs) -> Tensors:
    """Quotients and scales in high precision."""
    ue8m0 = inputs["ue8m0"]
    return quantised(inputs["x"], inputs, LEAST_UE8M0 if ue8m0 else LEAST_GROUP, ue8m0=ue8m0)


MUTANTS = (
    *COMMON_MUTANTS,
    INFINITE_SCALE,
    WRONG_STRIDE,
    Mutant("greatest value instead of magnitude", "tl.max(tl.abs(x)", "tl.max((x)"),
)
OUT_OF_ORDER = {"rows": 7, "width": 384, "dtype": FP16, "row_stride": 640, "column_major": True, "own": True}
POWERS = {"rows": 4, "width": 32 * 32, "group": 32, "dtype": FP32, "special": "powers of two", "ue8m0": True}

PER_TOKEN = Kernel(
    name="dynamic_per_token_scaled_fp8_quant",
    module="kernels_smoke.quantization.dynamic_per_token_scaled_fp8_quant",
    inputs=by_rows(draw_rows),
    outputs=outputs,
    launch=launcher("dynamic_per_token_scaled_fp8_quant"),
    reference=lambda inputs: quantised(inputs["x"], inputs, LEAST),
    checks={"codes": Codes(), "scales": Exact()},
    cases=(
        case("4096 wide", "quick", rows=272, width=4096),
        *(case(f"{width} wide", rows=7, width=width) for width in (1, 127, 300, 1025, 4097, 5137, 32768)),
        *ROW_CASES,
        big("70,001 rows", rows=70_001, width=1025),
        case("strided rows", rows=7, width=1000, row_stride=1024),
        case("misaligned rows", rows=7, width=1000, row_stride=1001, offset=1),
        case("fp16", rows=7, width=4096, dtype=FP16),
        case("ties", rows=7, width=4096, special="ties"),
        *(
            here(f"{name}, {width} wide", rows=5, width=width, dtype=DTYPES[name], row_stride=row_stride)
            for name in ("fp32", "fp16")
            for width, row_stride in ((127, 0), (300, 640))
        ),
        *near_greatest(256),
        here("upper bound", rows=5, width=300, dtype=FP32, bound=1.25),
        here("upper bound of zero", rows=3, width=300, dtype=FP32, bound=0.0),
        here("an outlier in each row", rows=5, width=300, dtype=FP16, special="outlier"),
        here("infinity", rows=5, width=300, dtype=FP32, special="infinity"),
        here("its own results", rows=5, width=300, dtype=FP16, row_stride=640, own=True),
    ),
    mutants=(*MUTANTS, *MASKS, *ROW_MUTANTS),
    speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.10, work=work),),
)

PER_GROUP = Kernel(
    name="per_token_group_fp8_quant",
    module="kernels_smoke.quantization.per_token_group_fp8_quant",
    inputs=draw_groups,
    outputs=outputs,
    launch=launcher("per_token_group_fp8_quant"),
    reference=group_reference,
    checks={"codes": Codes(), "scales": Exact()},
    cases=(
        case("4096 wide", "quick", rows=272, width=4096),
        case("4096 wide, UE8M0", "quick", rows=272, width=4096, ue8m0=True),
        *(case(f"{width} wide", rows=7, width=width) for width in (128, 384, 5120, 5248)),
        *(case(f"groups of {group}", rows=37, width=3 * group, group=group) for group in (1, 16, 64, 1024)),
        *GROUP_CASES,
        big("70,001 rows", rows=70_001, width=384),
        big("16,385 rows of 5,120", rows=16_385, width=5120),
        case("strided rows", rows=7, width=1024, row_stride=1032),
        case("misaligned rows", rows=7, width=1024, row_stride=1025, offset=1),
        case("ties", rows=7, width=4096, special="ties"),
        case("ties, UE8M0", rows=7, width=4096, special="ties", ue8m0=True),
        here("fp32, 384 wide", rows=11, width=384, dtype=FP32),
        here("fp32, 512 wide, UE8M0", rows=11, width=512, dtype=FP32, ue8m0=True),
        here("fp16, one group, UE8M0", rows=19, width=128, dtype=FP16, ue8m0=True),
        here("fp16, 384 wide", rows=5, width=384, dtype=FP16, row_stride=640),
        here("fp16, 512 wide, UE8M0", rows=5, width=512, dtype=FP16, row_stride=640, ue8m0=True),
        *TILE_CASES,
        here("scales at powers of two", **POWERS),
        *near_greatest(512),
        here("an outlier in each group", rows=5, width=384, dtype=FP16, special="outlier"),
        here("infinity", rows=5, width=384, dtype=FP32, special="infinity"),
        here("column-major, fp32", rows=7, width=384, dtype=FP32, column_major=True),
        here("its own results", **OUT_OF_ORDER),
        here("its own results, row-major", rows=7, width=384, dtype=FP32, own=True),
    ),
    mutants=(
        *MUTANTS,
        *GROUP_MUTANTS,
        *TILE_MUTANTS,
        Mutant("groups beyond the row", "mask = (rows < count) & (groups < group_count)", "mask = rows < count"),
        Mutant("power of two below", "(bits + 0x7FFFFF)", "(bits)", module=SCALING),
        Mutant(
            "rounded logarithm",
            "(((bits + 0x7FFFFF) >> 23) << 23).to(tl.float32, bitcast=True)",
            "tl.exp2(tl.ceil(tl.log2(scale)))",
            module=SCALING,
        ),
    ),
    speeds=(
        Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.15, work=work),
        Speed("16384 x 4096, UE8M0", {"rows": 16384, "width": 4096, "ue8m0": True}, bar=1.15, work=work),
    ),
)

KERNELS = {kernel.name: kernel for kernel in (PER_TOKEN, PER_GROUP)}
