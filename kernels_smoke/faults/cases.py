"""One case for each fault."""

from __future__ import annotations

import torch

from kernels_smoke.suite.compare import Near
from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Case, Inputs, Kernel

MODULE = "kernels_smoke.faults.faults"
OUT = {"out": ((16,), torch.float32)}


def _numbers(draw: Draw) -> Inputs:
    return {"source": draw.normal(16, dtype=torch.float32)}


def _kernel(name: str) -> Kernel:
    return Kernel(
        name=name,
        module=MODULE,
        inputs=_numbers,
        outputs=lambda _inputs: OUT,
        launch=lambda module, inputs, outputs: getattr(module, name)(inputs["source"], outputs["out"]),
        reference=lambda inputs: {"out": inputs["source"].double()},
        checks={"out": Near()},
        cases=(Case("first", {}, "quick", EVERYWHERE), Case("second", {}, "quick", EVERYWHERE)),
        mutants=(),
    )


KERNELS = {
    "reads_out_of_bounds": _kernel("reads_out_of_bounds"),
    "is_wrong": _kernel("is_wrong"),
    "hangs": Kernel(
        name="hangs",
        module=MODULE,
        inputs=lambda draw: {"flag": draw.place(torch.zeros(1, dtype=torch.int32))},
        outputs=lambda _inputs: OUT,
        launch=lambda module, inputs, outputs: module.hangs(inputs["flag"], outputs["out"]),
        reference=lambda inputs: {"out": torch.ones(16, dtype=torch.float64, device=inputs["flag"].device)},
        checks={"out": Near()},
        cases=(Case("first", {}, "quick", EVERYWHERE),),
        mutants=(),
    ),
}
