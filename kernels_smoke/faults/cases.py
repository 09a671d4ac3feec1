"""One case for each fault."""

import torch

from kernels_smoke.suite.correctness.compare import Near
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import EVERYWHERE, Case, Inputs, Kernel, Mutant

MODULE = "kernels_smoke.faults.broken"
OUT = {"out": ((16,), torch.float32)}


def _numbers(draw: Draw) -> Inputs:
    return {"source": draw.normal(16, dtype=torch.float32)}


COPY = "_copy_kernel[(1,)](source, out, 0, BLOCK=16)"
MUTANTS = (
    Mutant("wrong", COPY, COPY.replace("0,", "1,")),
    Mutant("dead", COPY, '__import__("os").abort()'),
    Mutant("silent", COPY, '__import__("time").sleep(600)'),
    Mutant("killed by someone else", COPY, '__import__("os").kill(__import__("os").getpid(), 9)'),
    Mutant("does not compile", COPY, COPY.replace("16", "17")),
    Mutant("the same", COPY, COPY + "  # and nothing else"),
)


def _kernel(name: str, mutants: tuple[Mutant, ...] = ()) -> Kernel:
    return Kernel(
        name=name,
        module=MODULE,
        inputs=_numbers,
        outputs=lambda _inputs: OUT,
        launch=lambda module, inputs, outputs: getattr(module, name)(inputs["source"], outputs["out"]),
        reference=lambda inputs: {"out": inputs["source"].double()},
        checks={"out": Near()},
        cases=(Case("first", {}, "quick", EVERYWHERE), Case("second", {}, "quick", EVERYWHERE)),
        mutants=mutants,
    )


KERNELS = {
    "reads_out_of_bounds": _kernel("reads_out_of_bounds"),
    "is_wrong": _kernel("is_wrong", MUTANTS[:1]),
    "is_right": _kernel("is_right", MUTANTS),
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
