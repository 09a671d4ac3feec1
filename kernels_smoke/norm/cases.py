"""What the suite runs for the norms, and what it expects."""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from kernels_smoke.norm.reference import add_rms_norm
from kernels_smoke.suite.compare import Exact, Near
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Case, Inputs, Kernel, Mutant, Speed, Tensors, Work

EPSILON = 1e-6


def draw_inputs(
    draw: Draw,
    *,
    rows: int,
    width: int,
    dtype: torch.dtype = torch.bfloat16,
    zero_centred: bool = True,
    row_stride: int = 0,
    scale: float = 1.0,
) -> Inputs:
    """Draw x and residual [rows, width], weight [width]; the middle row is zero, where there are three or more."""
    x = draw.normal(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name="x")
    residual = draw.normal(rows, width, dtype=dtype, scale=scale, row_stride=row_stride, name="residual")
    if rows >= 3 and x.device.type != "meta":
        x[rows // 2] = 0
        residual[rows // 2] = 0
    weight = draw.normal(width, dtype=dtype, scale=0.1, name="weight")
    return {"x": x, "residual": residual, "weight": weight, "zero_centred": zero_centred}


def outputs(inputs: Inputs) -> Mapping[str, tuple[tuple[int, ...], torch.dtype]]:
    """Both results look like ``x``."""
    like = (tuple(inputs["x"].shape), inputs["x"].dtype)
    return {"normed": like, "sum": like}


def launch(module: ModuleType, inputs: Inputs, outputs: Tensors) -> object:
    """One call of the public function."""
    return module.fused_add_rms_norm(**inputs, epsilon=EPSILON, out=(outputs["normed"], outputs["sum"]))


def reference(inputs: Inputs) -> Tensors:
    """Both results in high precision."""
    normed, total = add_rms_norm(**inputs, epsilon=EPSILON)
    return {"normed": normed, "sum": total}


def work(inputs: Inputs, _outputs: Tensors) -> Work:
    """Two tensors in, two out."""
    size: int = inputs["x"].nbytes
    return Work(bytes=4 * size)


def case(name: str, level: Any = "full", where: Any = ("cuda",), **shape: Any) -> Case:
    """A case, without the noise."""
    return Case(name, shape, level=level, where=where)


KERNELS = {
    "fused_add_rms_norm": Kernel(
        name="fused_add_rms_norm",
        module="kernels_smoke.norm.fused_add_rms_norm",
        inputs=draw_inputs,
        outputs=outputs,
        launch=launch,
        reference=reference,
        checks={"normed": Near(), "sum": Exact()},
        cases=(
            case("4096 wide", "quick", rows=257, width=4096),
            case("plain weight", rows=33, width=4096, zero_centred=False),
            *(case(f"{width} wide", rows=7, width=width) for width in (1, 127, 300, 1025, 4097, 5137)),
            case("no row", rows=0, width=128),
            case("one row", rows=1, width=4096),
            case("strided rows", rows=7, width=1000, row_stride=1024),
            case("values of 1e4", rows=7, width=4096, scale=1e4),
            *(
                case(f"{name}, {width} wide", "quick", EVERYWHERE, rows=5, width=width, dtype=dtype, row_stride=640)
                for name, dtype in (("fp32", torch.float32), ("fp16", torch.float16))
                for width in (127, 512)
            ),
            case("fp32, plain weight", "full", EVERYWHERE, rows=3, width=300, dtype=torch.float32, zero_centred=False),
        ),
        mutants=(
            Mutant(
                "unmasked loads",
                "x = tl.load(x_pointer + row * x_stride + columns, mask=mask, other=0.0)",
                "x = tl.load(x_pointer + row * x_stride + columns)",
            ),
            Mutant(
                "unmasked store",
                "normed.to(normed_pointer.dtype.element_ty), mask=mask",
                "normed.to(normed_pointer.dtype.element_ty)",
            ),
            Mutant("mean over the block", "/ width + epsilon", "/ BLOCK + epsilon"),
            Mutant("weights not zero-centred", "weight += 1.0", "weight += 0.0"),
            Mutant("stride of the wrong tensor", "sum_pointer + row * sum_stride", "sum_pointer + row * x_stride"),
        ),
        speeds=(Speed("16384 x 4096", {"rows": 16384, "width": 4096}, bar=1.10, work=work),),
    ),
}
