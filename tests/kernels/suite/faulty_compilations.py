"""Kernels of which every compilation has the fault that its name says, and a program that compiles them.

    python faulty_compilations.py '[[[["spills", "sm_90"], ...], {"TRITON_CACHE_DIR": ...}], ...]'

Each member is compiled by one child, with these variables: torch is imported once. It writes the records of the suite
to standard output, one JSON object a line, and after those of each child its exit code. Needs torch and triton.
"""

# ruff: noqa: N803  # Triton's constexpr arguments are written in capitals
# mypy: disable-error-code="untyped-decorator, no-untyped-def"
# Triton's functions take pointers and values that no Python type describes.

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

import torch
import triton
import triton.language as tl

from kernels_smoke.suite.compiling.compilations import compile_kernel
from kernels_smoke.suite.model import Case, Inputs, Kernel, Speed, Tensors, Work


@triton.jit
def _normalise_kernel(source, target, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(source + offsets)
    tl.store(target + offsets, values / tl.sum(values))  # all values must wait in registers for their sum


@triton.jit
def _sine_kernel(source, target, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(target + offsets, tl.sin(tl.load(source + offsets).to(tl.float32)))


@triton.jit
def _multiply_kernel(left, right, target, depth, TILE: tl.constexpr, STEP: tl.constexpr):
    rows, steps = tl.arange(0, TILE), tl.arange(0, STEP)
    total = tl.zeros((TILE, TILE), tl.float32)
    for start in range(0, depth, STEP):
        one = tl.load(left + rows[:, None] * depth + start + steps[None, :])
        other = tl.load(right + rows[None, :] * depth + start + steps[:, None])
        total = tl.dot(one, other, total, input_precision="ieee")
    tl.store(target + rows[:, None] * TILE + rows[None, :], total)


@triton.jit
def _assembly_kernel(source, target, BLOCK: tl.constexpr, TEXT: tl.constexpr, CONSTRAINTS: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    values = tl.load(source + offsets)
    values = tl.inline_asm_elementwise(TEXT, CONSTRAINTS, [values], dtype=tl.float32, is_pure=True, pack=1)
    tl.store(target + offsets, values)


def normalise(inputs: Inputs, outputs: Tensors, *, registers: int) -> None:
    _normalise_kernel[(1,)](inputs["source"], outputs["out"], BLOCK=4096, num_warps=1, maxnreg=registers)


def sine(inputs: Inputs, outputs: Tensors) -> None:
    _sine_kernel[(1,)](inputs["source"], outputs["out"], BLOCK=1024)


def multiply(inputs: Inputs, outputs: Tensors, *, step: int = 64, stages: int = 3) -> None:
    source, tile = inputs["source"], inputs["tile"]
    _multiply_kernel[(1,)](source, source, outputs["out"], 1024, TILE=tile, STEP=step, num_warps=4, num_stages=stages)


def assembly(inputs: Inputs, outputs: Tensors, *, text: str, constraints: str) -> None:
    _assembly_kernel[(1,)](inputs["source"], outputs["out"], BLOCK=128, TEXT=text, CONSTRAINTS=constraints)


def two_functions(inputs: Inputs, outputs: Tensors) -> None:
    multiply(inputs, outputs)
    sine(inputs, outputs)


def spill_in_halves(inputs: Inputs, outputs: Tensors) -> None:
    normalise(inputs, outputs, registers=255 if inputs["source"].dtype == torch.float32 else 32)


def kernel(
    name: str,
    run: Callable[..., None],
    *shapes: dict[str, Any],
    timed: bool = True,
    matrix: bool = False,
    spills: dict[str, int] | None = None,
    **settings: Any,
) -> Kernel:
    """A kernel that is only good for being compiled: one timed shape, and a case for each of ``shapes``."""

    def inputs(draw: Any, *, dtype: torch.dtype = torch.float32, tile: int = 128) -> Inputs:
        return {"source": draw.empty(4096, 4096, dtype=dtype), "tile": tile}

    def launch(_module: ModuleType, drawn: Inputs, outputs: Tensors) -> None:
        run(drawn, outputs, **settings)

    speeds = (Speed("timed", shapes[0], 1.0, work=lambda _inputs, _outputs: Work(0)),) if timed else ()
    return Kernel(
        name=name,
        module=__name__,
        inputs=inputs,
        outputs=lambda _inputs: {"out": ((4096, 4096), torch.float32)},
        launch=launch,
        reference=lambda _inputs: {},
        checks={},
        cases=tuple(Case(f"case {number}", shape, "quick") for number, shape in enumerate(shapes)),
        mutants=(),
        speeds=speeds,
        matrix_instructions=matrix,
        spills=spills or {},
    )


HALF, FP8 = {"dtype": torch.bfloat16}, {"dtype": torch.float8_e4m3fn}
KERNELS = {
    made.name: made
    for made in (
        kernel("sound", multiply, HALF, matrix=True),
        kernel("spills", normalise, {}, registers=32),
        kernel("spills_as_recorded", normalise, {}, registers=32, spills={"sm_90": 4096}),
        kernel("has_a_local_array", sine, {}),
        kernel("takes_too_much_shared_memory", multiply, HALF, step=128, stages=5),
        kernel("multiplies_nothing", sine, {}, matrix=True),
        kernel("multiplies_exactly", multiply, {"tile": 32}, matrix=True),
        kernel("small_tiles", multiply, HALF | {"tile": 16}, matrix=True),
        kernel("second_function_multiplies_nothing", two_functions, HALF, matrix=True),
        kernel("fp8", multiply, FP8),
        kernel("bad_assembly", assembly, {}, text="mov.nonsense $0, $1;", constraints="=r,r"),
        kernel("unknown_register", assembly, {}, text="mov.b32 $0, $1;", constraints="=y,y"),
        kernel("three_cases_of_two_kinds", sine, {}, {"tile": 16}, HALF, timed=False),
        kernel("spills_in_a_case", spill_in_halves, {}, HALF),
    )
}


def say(record: dict[str, Any]) -> None:
    """Write a record at once, so that the cause of a crash is known."""
    print(json.dumps(record), file=sys.__stdout__, flush=True)


if __name__ == "__main__":
    sys.stdout = sys.stderr  # Triton prints the errors of ptxas
    for subjects, environment in json.loads(sys.argv[1]):
        child = os.fork()
        if not child:
            os.environ.update(environment)
            for subject, target in subjects:
                compile_kernel(say, KERNELS[subject], target, "quick")
            os._exit(0)
        say({"kind": "exit", "code": os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])})
