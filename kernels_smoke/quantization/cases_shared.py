"""What the cases of all kernels here share: their inputs, outputs and the faults of the code that they share."""

from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.quantization import reference
from kernels_smoke.quantization.layout import TMA_ALIGNMENT, code_dtype
from kernels_smoke.suite.correctness.draw import BF16, FP16, FP32, Draw
from kernels_smoke.suite.model import Inputs, Mutant, Output, Tensors, Work, case, far, here

SCALING = "kernels_smoke.quantization.scaling"
LAYOUT = "kernels_smoke.quantization.layout"
GREATEST = {"bf16": 3.39e38, "fp16": 65504.0, "fp32": 3.4e38}  # of each dtype, rounded down
DTYPES = {"bf16": BF16, "fp16": FP16, "fp32": FP32}
LEAST = 1 / (448 * 512)  # scale of a row, and of a group behind a norm
# Names of inputs that are arguments, too.
ARGUMENTS = {name: name for name in ("x", "residual", "weight", "group", "ue8m0")} | {"bound": "scale_upper_bound"}


def draw_matrix(
    draw: Draw,
    rows: int,
    width: int,
    *,
    name: str,
    dtype: torch.dtype,
    scale: float = 1.0,
    row_stride: int = 0,
    offset: int = 0,
) -> torch.Tensor:
    """Draw normal values [rows, width], such that mistakes about rows and columns show.

    Each row is of another magnitude than its neighbours. The greatest of the first row is its last element, that of
    every second row its first, which is negative; so a row that reads on into the next one finds a greater one. The
    middle row is zero, where there are three or more. No magnitude is above six times ``scale``, or hardly.
    """
    x = draw.normal(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, offset=offset, name=name)
    if x.device.type != "meta" and rows:
        factors = row_factors(x)
        x *= factors[:, None]
        x[1::2, 0] = -5 * scale * factors[1::2]
        x[0, -1] = 6 * scale
        if rows >= 3:
            x[rows // 2] = 0
    return x


def row_factors(x: torch.Tensor) -> torch.Tensor:
    """How great each row of ``x`` is, from 1/7 to 1."""
    return ((torch.arange(x.shape[0], device=x.device) % 7 + 1) / 7).to(x.dtype)


def draw_bound(draw: Draw, bound: float | None) -> torch.Tensor | None:
    """``bound`` as a tensor of one element."""
    return None if bound is None else draw.place(torch.tensor([bound]), name="bound")


def result_layout(
    *, out_stride: int = 0, scale_stride: int = 0, column_major: bool = False, own: bool = False
) -> dict[str, Any]:
    """How the results lie, as part of the inputs.

    Rows of codes are ``out_stride`` elements apart, those of scales (their columns, if ``column_major``)
    ``scale_stride``; 0: they are dense. ``own``: the function makes its results itself.
    """
    return {"out_stride": out_stride, "scale_stride": scale_stride, "column_major": column_major, "own": own}


def by_rows(draw_inputs: Callable[..., Inputs]) -> Callable[..., Inputs]:
    """``draw_inputs`` for a kernel with a scale for each row: it also draws the bound."""
    return lambda draw, *, bound=None, **shape: {**draw_inputs(draw, **shape), "bound": draw_bound(draw, bound)}


def by_groups(draw_inputs: Callable[..., Inputs]) -> Callable[..., Inputs]:
    """``draw_inputs`` for a kernel with a scale for each group: it also says how large groups are."""
    return lambda draw, *, group=128, **shape: {**draw_inputs(draw, **shape), "group": group}


def outputs(inputs: Inputs, halves: int = 1) -> Mapping[str, Output]:
    """Codes as wide as ``x``, or half as wide, and scales: [groups, rows] when they lie column by column."""
    rows, width = inputs["x"].shape[0], inputs["x"].shape[1] // halves
    groups = width // inputs.get("group", width)
    return {
        "codes": ((rows, width), code_dtype(), inputs["out_stride"]),
        "scales": ((groups, rows) if inputs["column_major"] else (rows, groups), FP32, inputs["scale_stride"]),
    }


def launcher(name: str, **options: Any) -> Callable[[ModuleType, Inputs, Tensors], object]:
    """How the function ``name`` is launched: with ``options`` and its inputs.

    Into the outputs or, with ``own``, into results that it makes, which are copied there. Scales that it made and that
    do not lie as is promised become not-a-number.
    """

    def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
        arguments = {ARGUMENTS[key]: value for key, value in inputs.items() if key in ARGUMENTS} | options
        if not inputs.get("add", True):
            arguments["residual"] = None
        codes, scales = outputs["codes"], outputs["scales"]
        column_major = inputs["column_major"]
        scales = scales.T if column_major else scales
        if not inputs["own"]:
            return getattr(module, name)(**arguments, out=(codes, scales))
        made = getattr(module, name)(**arguments, **({"column_major_scales": True} if column_major else {}))
        codes.copy_(made[0])
        scales.copy_(made[1])
        rows, groups = scales.shape
        if made[1].stride() != ((1, -(-rows // TMA_ALIGNMENT) * TMA_ALIGNMENT) if column_major else (groups, 1)):
            scales.fill_(torch.nan)
        return made

    return launch


def quantised(values: torch.Tensor, inputs: Inputs, least: float, *, ue8m0: bool = False) -> dict[str, torch.Tensor]:
    """Quotients and scales of ``values`` in high precision; ``least`` is the least scale."""
    if "group" not in inputs:
        codes, scales = reference.by_row(values, least, inputs["bound"])
    else:
        codes, scales = reference.by_group(values, inputs["group"], least, ue8m0=ue8m0)
    return {"codes": codes, "scales": scales.T if inputs["column_major"] else scales}


def given_scales(inputs: Inputs, expected: Tensors, written: Tensors) -> dict[str, torch.Tensor]:
    """The quotients by the scales that were written, which the check of the scales judges."""
    codes, by, own = expected["codes"], expected["scales"], written["scales"]
    if inputs["column_major"]:
        by, own = by.T, own.T
    ratio = _reciprocal(own) / _reciprocal(by)
    quotients = codes.reshape(*own.shape, -1) * ratio[..., None] if codes.numel() else codes
    return {"codes": quotients.reshape(codes.shape).clamp(-448.0, 448.0)}


def _reciprocal(scales: torch.Tensor) -> torch.Tensor:
    return (1 / scales.double()).float().double()


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Each input once and each output once; what is updated in place counts twice."""
    size = sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))
    size += sum(value.nbytes for value in outputs.values())
    if inputs.get("add"):
        size += inputs["residual"].nbytes
    return Work(bytes=size)


# Cases of all kernels, and of those with a scale for each row or for each group.
COMMON = (
    case("one row", rows=1, width=4096),
    case("values of 1e4", rows=7, width=4096, scale=1e4),
    far("rows beyond 2^31 elements", rows=3, width=4096, row_stride=2**30 + 8),
)
LAID_OUT = {"rows": 7, "width": 300, "dtype": FP32, "out_stride": 320, "scale_stride": 3}
ROW_CASES = (
    *COMMON,
    here("no row", rows=0, width=128, dtype=FP32),
    here("results with their own strides", **LAID_OUT),
)
LAID_OUT_IN_GROUPS = {"rows": 7, "width": 384, "dtype": FP32, "out_stride": 400, "scale_stride": 9}
GROUP_CASES = (
    *COMMON,
    here("no row", rows=0, width=256, dtype=FP32),
    case("column-major scales", rows=37, width=1024, column_major=True),
    here("results with their own strides", **LAID_OUT_IN_GROUPS),
    here("results with their own strides, column-major", **LAID_OUT_IN_GROUPS, column_major=True),
)
# Enough elements for tiles of several groups, the last of which are partial.
TILE_CASES = (
    here("more groups than a tile", rows=27, width=41 * 128, dtype=FP32),
    here("more rows than a tile, their own results", rows=351, width=384, dtype=FP16, own=True),
)
# Of the kernels that compute something before, by rows and by groups.
FUSED_ROW_CASES = (
    *ROW_CASES,
    case("fp16", rows=7, width=4096, dtype=FP16),
    here("upper bound", rows=17, width=300, dtype=FP32, bound=1.25),
    here("upper bound of zero", rows=7, width=300, dtype=FP32, bound=0.0),
    here("its own results", rows=7, width=300, dtype=FP16, own=True),
)
FUSED_GROUP_CASES = (
    *GROUP_CASES,
    *(case(f"{width} wide", rows=37, width=width) for width in (128, 384, 5120)),
    *(case(f"groups of {group}", rows=137, width=3 * group, group=group) for group in (1, 16, 64, 1024)),
    case("fp16", rows=7, width=4096, dtype=FP16),
    here("column-major, fp32", rows=17, width=384, dtype=FP32, column_major=True),
    here("its own results", rows=7, width=384, dtype=FP16, own=True),
    here("its own results, column-major", rows=7, width=384, dtype=FP16, own=True, column_major=True),
)


def scaling(name: str, old: str, new: str, **where: Any) -> Mutant:
    """A fault in the device functions that all kernels share."""
    return Mutant(name, old, new, SCALING, **where)


# Faults in the code that all kernels share. A kernel's own module is broken by its own mutants.
COMMON_MUTANTS = (
    scaling(
        "no least scale",
        "tl.maximum(tl.div_rn(tl.minimum(absmax, float32_max), 448.0), LEAST)",
        "tl.div_rn(tl.minimum(absmax, float32_max), 448.0)",
    ),
    scaling("the range of another format", "float32_max), 448.0)", "float32_max), 240.0)"),
    scaling("scale instead of its reciprocal", "values * tl.div_rn(1.0, scale)", "values * scale"),
)
INFINITE_SCALE = scaling("infinite scale", "tl.minimum(absmax, float32_max)", "absmax")
BOUND_MUTANTS = (
    scaling("upper bound ignored", "tl.minimum(absmax, tl.load(bound_pointer))", "absmax"),
    scaling(
        "quotients not clamped",
        "tl.clamp(values * tl.div_rn(1.0, scale), -448.0, 448.0)",
        "values * tl.div_rn(1.0, scale)",
        where=("interpret",),
        why="NVIDIA's conversion to fp8 saturates by itself",
    ),
    Mutant(
        "an upper bound of zero taken for none",
        "bound_pointer=scale_upper_bound",
        "bound_pointer=scale_upper_bound or None",
    ),
)
# Faults of one wording in several kernels.
WRONG_STRIDE = Mutant("stride of the wrong tensor", "x_pointer + rows * x_stride", "x_pointer + rows * codes_stride")
LOAD = "tl.load(x_pointer + rows * x_stride + columns, mask=mask,"
STORE = "tl.store(codes_pointer + rows * codes_stride + columns, codes, mask=mask)"
MASKS = (
    Mutant("column mask of the load dropped", LOAD, LOAD.replace("mask=mask", "mask=rows < count")),
    Mutant("column mask of the store dropped", STORE, STORE.replace("mask=mask", "mask=rows < count")),
)
ROW_MUTANTS = (
    *BOUND_MUTANTS,
    Mutant("codes taken for dense", "rows * codes_stride", "rows * width"),
    Mutant("scales taken for dense", "scales_pointer + rows * scales_stride", "scales_pointer + rows"),
    Mutant("scale of the tile, not of the row", "scales_pointer + rows *", "scales_pointer + rows // ROWS *"),
)
GROUP_MUTANTS = (
    Mutant("codes taken for dense", "rows * codes_stride", "rows * group_count * GROUP"),
    Mutant(
        "rows of scales taken for dense", "scales.stride(0)", "groups if scales.stride(1) == 1 else scales.stride(0)"
    ),
    Mutant(
        "columns of scales taken for dense", "scales.stride(1)", "rows if scales.stride(0) == 1 else scales.stride(1)"
    ),
    Mutant("its own scales always row-major", "column_major=column_major_scales", "column_major=False"),
    Mutant("columns of separate scales not aligned", "(1, aligned)", "(1, rows)", module=LAYOUT),
    Mutant("scale of the next group", "+ groups * scales_group_stride", "+ (groups + 1) * scales_group_stride"),
    Mutant("scales as if row-major", "groups * scales_group_stride", "groups"),
)
TILE_MUTANTS = (
    Mutant("rows of the tile forgotten", "tile // tiles_across * ROWS", "tile // tiles_across"),
    Mutant("groups of the tile forgotten", "tile % tiles_across * GROUPS", "tile % tiles_across"),
)
