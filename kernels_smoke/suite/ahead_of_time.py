"""Compiling every kernel for a GPU that is not here.

A case is run with tensors that have shapes and no values (device "meta"), under a driver that only names a target.
Triton then compiles each kernel exactly as it would at its first launch there: the same specialisation, the same key in
its cache. So the same step fills the cache before CUDA starts, in several processes at once.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.jit import JITFunction

from kernels_smoke.suite.draw import Draw
from kernels_smoke.suite.model import Case, Kernel, Speed


class StubDriver:
    """A driver without a GPU: it names the target, and nothing can be launched.

    Triton keeps what it compiled by device number, so every target has a number of its own.
    """

    def __init__(self, target: GPUTarget) -> None:
        self.target = target

    def get_current_target(self) -> GPUTarget:
        """The target to compile for."""
        return self.target

    def get_current_device(self) -> str:
        """A stand-in for the device number."""
        return f"no device, {self.target.backend} {self.target.arch}"

    def get_current_stream(self, device: object) -> int:  # noqa: ARG002  # Triton's interface
        """The default stream."""
        return 0


def target_of(name: str) -> GPUTarget:
    """``sm_90`` or ``gfx942`` as Triton's target. Raises ValueError for any other kind of name."""
    if name.startswith("sm_") and name[3:].isdigit():
        return GPUTarget("cuda", int(name[3:]), 32)
    if name.startswith("gfx"):
        return GPUTarget("hip", name, 64)
    raise ValueError(f"{name!r} names no target: expected sm_NN (NVIDIA) or gfxNNN (AMD)")


@contextlib.contextmanager
def compiling(target: GPUTarget) -> Iterator[list[Any]]:
    """While this is active, launching a kernel compiles it for ``target``; what was compiled is added to the list."""
    compiled: list[Any] = []
    driver = triton.runtime.driver
    before, run = driver._active, JITFunction.run  # noqa: SLF001  # `active` would look for a GPU

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ARG001
        kernel = run(self, *args, grid=grid, warmup=True, **kwargs)
        compiled.append(kernel)
        return kernel

    driver.set_active(StubDriver(target))
    JITFunction.run = compile_only
    try:
        yield compiled
    finally:
        JITFunction.run = run
        driver._active = before  # noqa: SLF001  # see above


def compile_case(kernel: Kernel, case: Case | Speed, target: GPUTarget) -> list[Any]:
    """The compiled kernels (Triton's ``CompiledKernel``) that one run of ``case`` launches on ``target``."""
    module = importlib.import_module(kernel.module)
    draw = Draw(0, "meta")
    with compiling(target) as compiled:
        inputs = kernel.inputs(draw, **case.shape)
        outputs = {name: draw.empty(*shape, dtype=dtype) for name, (shape, dtype) in kernel.outputs(inputs).items()}
        kernel.launch(module, inputs, outputs)
    return compiled
