"""What the cases of all kernels here share: their inputs, outputs and the faults of the code that they share."""

from __future__ import annotations

from typing import Any

import torch

from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import Case, Inputs, Mutant, Tensors, Work

SCALING = "kernels_smoke.quantization.scaling"
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


def work(inputs: Inputs, outputs: Tensors) -> Work:
    """Each input once and each output once; what is updated in place counts twice."""
    size = sum(value.nbytes for value in inputs.values() if isinstance(value, torch.Tensor))
    size += sum(value.nbytes for value in outputs.values())
    if inputs.get("add"):
        size += inputs["residual"].nbytes
    return Work(bytes=size)


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
