"""What the cases of all kernels here share: their inputs, outputs and the faults of the code that they share."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import torch

from kernels_smoke.quantization.layout import TMA_ALIGNMENT, code_dtype
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Case, Inputs, Mutant, Output, Tensors, Work

SCALING = "kernels_smoke.quantization.scaling"
LAYOUT = "kernels_smoke.quantization.layout"
GREATEST = {"bf16": 3.39e38, "fp16": 65504.0, "fp32": 3.4e38}  # of each dtype, rounded down
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}


def case(name: str, level: Any = "full", where: Any = ("cuda",), **shape: Any) -> Case:
    """A case, without the noise. Level quick has multiples of 16 rows: the machine code is that of the timed shapes."""
    return Case(name, shape, level=level, where=where)


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


def described(inputs: Inputs, rows: int, width: int, groups: int = 1) -> Mapping[str, Output]:
    """Codes [rows, width] and scales [rows, groups], or [groups, rows] when they lie column by column."""
    scales = (groups, rows) if inputs["column_major"] else (rows, groups)
    return {
        "codes": ((rows, width), code_dtype(), inputs["out_stride"]),
        "scales": (scales, torch.float32, inputs["scale_stride"]),
    }


def call(function: Callable[..., Any], inputs: Inputs, outputs: Tensors, *tensors: torch.Tensor, **more: Any) -> object:
    """One call of ``function``, into ``outputs`` or, with ``own``, into results of its own, which are copied there.

    Scales of its own that do not lie as is promised become not-a-number.
    """
    codes, scales = outputs["codes"], outputs["scales"]
    column_major = inputs["column_major"]
    scales = scales.T if column_major else scales
    if not inputs["own"]:
        return function(*tensors, **more, out=(codes, scales))
    made = function(*tensors, **more, **({"column_major_scales": True} if column_major else {}))
    codes.copy_(made[0])
    scales.copy_(made[1])
    rows, groups = scales.shape
    if made[1].stride() != ((1, -(-rows // TMA_ALIGNMENT) * TMA_ALIGNMENT) if column_major else (groups, 1)):
        scales.fill_(torch.nan)
    return made


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Each input once and each output once; what is updated in place counts twice."""
    size = sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))
    size += sum(value.nbytes for value in outputs.values())
    if inputs.get("add"):
        size += inputs["residual"].nbytes
    return Work(bytes=size)


# Cases whose results lie in other ways.
ROW_LAYOUTS = (
    case(
        "results with strides of their own",
        "full",
        EVERYWHERE,
        rows=7,
        width=300,
        dtype=torch.float32,
        out_stride=320,
        scale_stride=3,
    ),
)
GROUP_LAYOUTS = tuple(
    case(
        f"results with strides of their own{', column-major' * column_major}",
        "full",
        EVERYWHERE,
        rows=7,
        width=384,
        dtype=torch.float32,
        out_stride=400,
        scale_stride=9,
        column_major=column_major,
    )
    for column_major in (False, True)
)

# Faults in the code that all kernels share. A kernel's own module is broken by its own mutants.
LEAST_DROPPED = Mutant(
    "no least scale",
    "tl.maximum(tl.div_rn(tl.minimum(greatest, float32_max), 448.0), LEAST)",
    "tl.div_rn(tl.minimum(greatest, float32_max), 448.0)",
    module=SCALING,
)
INFINITE_SCALE = Mutant("infinite scale", "tl.minimum(greatest, float32_max)", "greatest", module=SCALING)
BOUND_IGNORED = Mutant(
    "upper bound ignored", "tl.minimum(greatest, tl.load(bound_pointer))", "greatest", module=SCALING
)
RANGE_OF_FNUZ = Mutant("the range of another format", "float32_max), 448.0)", "float32_max), 240.0)", module=SCALING)
NOT_CLAMPED = Mutant(
    "quotients not clamped",
    "tl.clamp(values * tl.div_rn(1.0, scale), -448.0, 448.0)",
    "values * tl.div_rn(1.0, scale)",
    module=SCALING,
    where=("interpret",),
    why="NVIDIA's conversion to fp8 saturates by itself",
)
MULTIPLIED = Mutant(
    "scale instead of its reciprocal", "values * tl.div_rn(1.0, scale)", "values * scale", module=SCALING
)
CODES_DENSE = Mutant("codes taken for dense", "rows * codes_stride", "rows * width")
CODES_OF_GROUPS_DENSE = Mutant("codes taken for dense", "rows * codes_stride", "rows * group_count * GROUP")
SCALES_DENSE = Mutant("scales taken for dense", "scales_pointer + rows * scales_stride", "scales_pointer + rows")
ROWS_OF_SCALES_DENSE = Mutant(
    "rows of scales taken for dense", "*scales.stride()", "*((groups, 1) if scales.stride(1) == 1 else scales.stride())"
)
COLUMNS_OF_SCALES_DENSE = Mutant(
    "columns of scales taken for dense",
    "*scales.stride()",
    "*((1, rows) if scales.stride(0) == 1 else scales.stride())",
)
ORDER_FORGOTTEN = Mutant("its own scales always row-major", "column_major=column_major_scales", "column_major=False")
COLUMNS_NOT_ALIGNED = Mutant("columns of its own scales not aligned", "(1, aligned)", "(1, rows)", module=LAYOUT)
BOUND_OF_ZERO = Mutant(
    "an upper bound of zero taken for none", "scales, scale_upper_bound)", "scales, scale_upper_bound or None)"
)
ROW_RESULTS = (CODES_DENSE, SCALES_DENSE, BOUND_OF_ZERO)
GROUP_RESULTS = (
    CODES_OF_GROUPS_DENSE,
    ROWS_OF_SCALES_DENSE,
    COLUMNS_OF_SCALES_DENSE,
    ORDER_FORGOTTEN,
    COLUMNS_NOT_ALIGNED,
)
