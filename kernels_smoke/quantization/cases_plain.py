"""What the suite runs for quantisation alone, and what it expects: scales and codes to the last bit.

Divisions and products are rounded once in the definition, so the codes on a GPU have to be those of the reference.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.quantization import reference
from kernels_smoke.quantization.inputs import (
    BOUND_IGNORED,
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
    ROW_RESULTS,
    SCALING,
    call,
    case,
    described,
    draw_bound,
    draw_matrix,
    result_layout,
    work,
)
from kernels_smoke.suite.compare import Codes, Exact
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Inputs, Kernel, Mutant, Output, Speed, Tensors

LEAST = 1 / (448 * 512)
LEAST_GROUP = 1e-10 / 448
LEAST_UE8M0 = 1e-10
OUTLIER = 3e4  # beside it, values around 1 are subnormal in e4m3


def draw_rows(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = torch.bfloat16,
    scale: float = 1.0,
    row_stride: int = 0,
    offset: int = 0,
    bound: float | None = None,
    special: str = "",
    **layout: Any,
) -> Inputs:
    """Draw x [rows, width] and the bound; ``layout`` says how the results lie."""
    x = draw_matrix(draw, rows, width, name="x", dtype=dtype, scale=scale, row_stride=row_stride, offset=offset)
    if x.device.type != "meta":
        _specialise(x, special)
    return {"x": x, "bound": draw_bound(draw, bound), **result_layout(**layout)}


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


def near_greatest(name: str) -> dict[str, Any]:
    """Values whose maxima come near the greatest of the dtype, and that one."""
    return {"scale": GREATEST[name] / 8, "special": "greatest"}


def row_outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Codes like ``x``, and a scale for each row."""
    return described(inputs, *inputs["x"].shape)


def launch_rows(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    function = module.dynamic_per_token_scaled_fp8_quant
    return call(function, inputs, outputs, inputs["x"], scale_upper_bound=inputs["bound"])


def row_reference(inputs: Inputs) -> Tensors:
    """Quotients and scales in high precision."""
    codes, scales = reference.by_row(inputs["x"], LEAST, inputs["bound"])
    return {"codes": codes, "scales": scales}


def draw_groups(
    draw: Draw,
    *,
    rows: int,
    width: int,
    group: int = 128,
    ue8m0: bool = False,
    dtype: torch.dtype = torch.bfloat16,
    scale: float = 1.0,
    row_stride: int = 0,
    offset: int = 0,
    special: str = "",
    **layout: Any,
) -> Inputs:
    """Draw x [rows, width], whose last row begins with a group of zeros; ``layout`` says how the results lie."""
    x = draw_matrix(draw, rows, width, name="x", dtype=dtype, scale=scale, row_stride=row_stride, offset=offset)
    if x.device.type != "meta" and rows:
        x[-1, :group] = 0
        _specialise(x, special, group)
    return {"x": x, "group": group, "ue8m0": ue8m0, **result_layout(**layout)}


def group_outputs(inputs: Inputs) -> Mapping[str, Output]:
    """Codes like ``x``, and a scale for each group."""
    rows, width = inputs["x"].shape
    return described(inputs, rows, width, width // inputs["group"])


def launch_groups(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    function = module.per_token_group_fp8_quant
    return call(function, inputs, outputs, inputs["x"], group=inputs["group"], ue8m0=inputs["ue8m0"])


def group_reference(inputs: Inputs) -> Tensors:
    """Quotients and scales in high precision."""
    least = LEAST_UE8M0 if inputs["ue8m0"] else LEAST_GROUP
    codes, scales = reference.by_group(inputs["x"], inputs["group"], least, ue8m0=inputs["ue8m0"])
    return {"codes": codes, "scales": scales.T if inputs["column_major"] else scales}


LOAD = "tl.load(x_pointer + rows * x_stride + columns, mask=mask,"
STORE = "tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)"
SHARED_MUTANTS = (LEAST_DROPPED, INFINITE_SCALE, RANGE_OF_FNUZ, MULTIPLIED)

PER_TOKEN = Kernel(
    name="dynamic_per_token_scaled_fp8_quant",
    module="kernels_smoke.quantization.dynamic_per_token_scaled_fp8_quant",
    inputs=draw_rows,
    outputs=row_outputs,
    launch=launch_rows,
    reference=row_reference,
    checks={"codes": Codes(differing=0.0), "scales": Exact()},
    cases=(
        case("4096 wide", "quick", rows=272, width=4096),
        *(case(f"{width} wide", rows=7, width=width) for width in (1, 127, 300, 1025, 4097, 5137, 32768)),
        case("no row", "full", EVERYWHERE, rows=0, width=128, dtype=torch.float32),
        case("one row", rows=1, width=4096),
        case("strided rows", rows=7, width=1000, row_stride=1024),
        case("misaligned rows", rows=7, width=1000, row_stride=1001, offset=1),
        case("fp16", rows=7, width=4096, dtype=torch.float16),
        case("values of 1e4", rows=7, width=4096, scale=1e4),
        case("ties", rows=7, width=4096, special="ties"),
        case("rows beyond 2^31 elements", "deep", rows=3, width=4096, row_stride=2**30 + 8),
        *(
            case(f"{name}, {width} wide", "full", EVERYWHERE, rows=5, width=width, dtype=dtype, row_stride=row_stride)
            for name, dtype in (("fp32", torch.float32), ("fp16", torch.float16))
            for width, row_stride in ((127, 0), (300, 640))
        ),
        *(
            case(
                f"near the greatest {name}", "full", where, rows=5, width=256, dtype=DTYPES[name], **near_greatest(name)
            )
            for name, where in (("bf16", ("cuda",)), ("fp16", EVERYWHERE), ("fp32", EVERYWHERE))
        ),
        case("upper bound", "full", EVERYWHERE, rows=5, width=300, dtype=torch.float32, bound=1.25),
        case("an outlier in each row", "full", EVERYWHERE, rows=5, width=300, dtype=torch.float16, special="outlier"),
        case("infinity", "full", EVERYWHERE, rows=5, width=300, dtype=torch.float32, special="infinity"),
        case("its own results", "full", EVERYWHERE, rows=5, width=300, dtype=torch.float16, row_stride=640, own=True),
        *ROW_LAYOUTS,
        case("upper bound of zero", "full", EVERYWHERE, rows=5, width=300, dtype=torch.float32, bound=0.0),
    ),
    mutants=(
        Mutant("column mask of the load dropped", LOAD, LOAD.replace("mask=mask", "mask=rows < count")),
        Mutant("column mask of the store dropped", STORE, STORE.replace("mask=mask", "mask=rows < count")),
        Mutant("greatest value instead of magnitude", "tl.max(tl.abs(x)", "tl.max((x)"),
        Mutant("stride of the wrong tensor", "x_pointer + rows * x_stride", "x_pointer + rows * codes_stride"),
        Mutant("scale of the tile, not of the row", "scales_pointer + rows *", "scales_pointer + rows // ROWS *"),
        *SHARED_MUTANTS,
        *ROW_RESULTS,
        BOUND_IGNORED,
        NOT_CLAMPED,
    ),
    speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.10, work=work),),
)

PER_GROUP = Kernel(
    name="per_token_group_fp8_quant",
    module="kernels_smoke.quantization.per_token_group_fp8_quant",
    inputs=draw_groups,
    outputs=group_outputs,
    launch=launch_groups,
    reference=group_reference,
    checks={"codes": Codes(differing=0.0), "scales": Exact()},
    cases=(
        case("4096 wide", "quick", rows=272, width=4096),
        case("4096 wide, UE8M0", "quick", rows=272, width=4096, ue8m0=True),
        *(case(f"{width} wide", rows=7, width=width) for width in (128, 384, 5120, 5248)),
        *(case(f"groups of {group}", rows=37, width=3 * group, group=group) for group in (1, 16, 64, 1024)),
        case("no row", "full", EVERYWHERE, rows=0, width=256, dtype=torch.float32),
        case("one row", rows=1, width=4096),
        case("strided rows", rows=7, width=1024, row_stride=1032),
        case("misaligned rows", rows=7, width=1024, row_stride=1025, offset=1),
        case("column-major scales", rows=37, width=1024, column_major=True),
        case("values of 1e4", rows=7, width=4096, scale=1e4),
        case("ties", rows=7, width=4096, special="ties"),
        case("ties, UE8M0", rows=7, width=4096, special="ties", ue8m0=True),
        case("rows beyond 2^31 elements", "deep", rows=3, width=4096, row_stride=2**30 + 8),
        *(
            case(f"{name}, {width} wide{', UE8M0' * ue8m0}", "full", EVERYWHERE, width=width, **more)
            for name, more in (
                ("fp32", {"rows": 11, "dtype": torch.float32}),
                ("fp16", {"rows": 5, "dtype": torch.float16, "row_stride": 640}),
            )
            for width, ue8m0 in ((384, False), (512, True))
            for more in ({**more, "ue8m0": ue8m0},)
        ),
        case("more groups than a tile", "full", EVERYWHERE, rows=3, width=41 * 128, dtype=torch.float32),
        case(
            "scales at powers of two",
            "full",
            EVERYWHERE,
            rows=4,
            width=32 * 32,
            group=32,
            dtype=torch.float32,
            special="powers of two",
            ue8m0=True,
        ),
        *(
            case(
                f"near the greatest {name}", "full", where, rows=5, width=512, dtype=DTYPES[name], **near_greatest(name)
            )
            for name, where in (("bf16", ("cuda",)), ("fp16", EVERYWHERE), ("fp32", EVERYWHERE))
        ),
        case("an outlier in each group", "full", EVERYWHERE, rows=5, width=384, dtype=torch.float16, special="outlier"),
        case("infinity", "full", EVERYWHERE, rows=5, width=384, dtype=torch.float32, special="infinity"),
        case("column-major, fp32", "full", EVERYWHERE, rows=7, width=384, dtype=torch.float32, column_major=True),
        case(
            "its own results",
            "full",
            EVERYWHERE,
            rows=7,
            width=384,
            dtype=torch.float16,
            row_stride=640,
            column_major=True,
            own=True,
        ),
        case("its own results, row-major", "full", EVERYWHERE, rows=7, width=384, dtype=torch.float32, own=True),
        *GROUP_LAYOUTS,
    ),
    mutants=(
        Mutant("greatest value instead of magnitude", "tl.max(tl.abs(x)", "tl.max((x)"),
        Mutant("stride of the wrong tensor", "x_pointer + rows * x_stride", "x_pointer + rows * codes_stride"),
        Mutant("scale of the next group", "+ groups * scales_group_stride", "+ (groups + 1) * scales_group_stride"),
        Mutant("scales as if row-major", "groups * scales_group_stride", "groups"),
        Mutant("groups beyond the row", "mask = (rows < count) & (groups < group_count)", "mask = rows < count"),
        Mutant("rows of the tile forgotten", "tile // across * ROWS", "tile // across"),
        Mutant("groups of the tile forgotten", "tile % across * GROUPS", "tile % across"),
        Mutant("power of two below", "(bits + 0x7FFFFF)", "(bits)", module=SCALING),
        Mutant(
            "rounded logarithm",
            "(((bits + 0x7FFFFF) >> 23) << 23).to(tl.float32, bitcast=True)",
            "tl.exp2(tl.ceil(tl.log2(scale)))",
            module=SCALING,
        ),
        *SHARED_MUTANTS,
        *GROUP_RESULTS,
    ),
    speeds=(
        Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.15, work=work),
        Speed("16384 x 4096, UE8M0", {"rows": 16384, "width": 4096, "ue8m0": True}, bar=1.15, work=work),
    ),
)

KERNELS = {kernel.name: kernel for kernel in (PER_TOKEN, PER_GROUP)}
