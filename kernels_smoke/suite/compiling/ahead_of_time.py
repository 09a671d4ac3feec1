"""Compiling every kernel for a GPU that is not here.

A case is run with tensors that have shapes and no values (device "meta"), under a driver that only names a target.
Triton then compiles each kernel exactly as it would at its first launch there: the same specialisation, the same key in
its cache. So the same step fills the cache before CUDA starts, in several processes at once.
"""

import contextlib
import fcntl
import importlib
import os
import sys
import tempfile
import types
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime.cache import FileCacheManager
from triton.runtime.jit import JITFunction

from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.model import Case, Kernel, Speed


@dataclass(frozen=True)
class Function:
    """One device function that was launched, and so compiled.

    ``compiled`` is Triton's ``CompiledKernel``; ``said`` is what the compilers wrote to standard error meanwhile.
    """

    name: str
    compiled: Any
    said: str


class RefusedError(Exception):
    """Triton refused the device function ``function``; the cause is what it raised. ``said`` is as in Function."""

    def __init__(self, function: str, cause: Exception, said: str) -> None:
        super().__init__(f"{function}: {type(cause).__name__}: {cause}")
        self.function, self.said = function, said


class ClaimedError(Exception):
    """Another process compiles this."""


_claims = tempfile.TemporaryFile()  # noqa: SIM115  # nothing is ever in it: its bytes are locked, by children of this one


@contextlib.contextmanager
def claiming() -> Iterator[None]:
    """While this is active, a launch compiles nothing that another child of the same process compiles, or has compiled.

    A child locks a byte for what it finds missing in Triton's cache, until it ends.
    """
    before = FileCacheManager.get_group

    def get_group(self: Any, filename: str) -> Any:
        group = before(self, filename)
        if not group:
            try:
                fcntl.lockf(_claims, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, zlib.crc32(self.key.encode()))
            except OSError as error:
                raise ClaimedError from error
        return group

    FileCacheManager.get_group = get_group
    try:
        yield
    finally:
        FileCacheManager.get_group = before


class StubDriver:
    """A driver without a GPU: it names the target, and nothing can be launched.

    Triton keeps what it compiled by device number, so every target has its own number.
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
def compiling(target: GPUTarget) -> Iterator[list[Function]]:
    """While this is active, launching a kernel compiles it for ``target``; what was compiled is added to the list.

    A launch raises RefusedError when the kernel cannot be compiled.
    """
    functions: list[Function] = []
    driver = triton.runtime.driver
    attribute = "_active" if hasattr(driver, "_active") else "active"  # `active` would look for a GPU; 3.3 has no other
    before, run = getattr(driver, attribute), JITFunction.run

    def compile_only(self: Any, *args: Any, grid: Any, warmup: bool, **kwargs: Any) -> Any:  # noqa: ARG001
        name, start = self.fn.__name__, _written()
        try:
            compiled = run(self, *args, grid=grid, warmup=True, **kwargs)
        except ClaimedError:
            return None
        except Exception as error:
            raise RefusedError(name, error, _written_since(start)) from error
        functions.append(Function(name, compiled, _written_since(start)))
        return compiled

    driver.set_active(StubDriver(target))
    JITFunction.run = compile_only
    try:
        yield functions
    finally:
        JITFunction.run = run
        setattr(driver, attribute, before)


def launch(kernel: Kernel, case: Case | Speed) -> None:
    """Run ``case`` with tensors that have no values; only of use while ``compiling``."""
    module = importlib.import_module(kernel.module)
    draw = Draw(0, "meta")
    with _without_dynamo():
        inputs = kernel.inputs(draw, **case.shape)
        outputs = draw.outputs(kernel.outputs(inputs))
        kernel.launch(module, inputs, outputs)


@contextlib.contextmanager
def _without_dynamo() -> Iterator[None]:
    """Spare the import of torch.compile's front end, 3 s in each process that compiles.

    Some operations on tensors without values are written in Python, and marked as not to be traced when they are first
    called: ``torch._compile`` imports ``torch._dynamo`` for its ``disable``. Here nothing traces.
    """
    name = "torch._dynamo"
    if name in sys.modules:
        yield
        return
    stand_in: Any = types.ModuleType(name)
    stand_in.disable = lambda function, *_, **__: function
    sys.modules[name] = torch._dynamo = stand_in  # noqa: SLF001  # what `import torch._dynamo` would bind
    try:
        yield
    finally:
        del sys.modules[name], torch._dynamo  # noqa: SLF001  # likewise: who needs the real one imports it


def warm_up() -> None:
    """Do now what each process would otherwise do at its first compilation: Triton hashes its whole package, for 0.4 s.

    For a process that is going to fork others which compile: they inherit the result.
    """
    for module in ("triton.runtime.cache", "triton.compiler.compiler"):  # since Triton 3.5, and before
        with contextlib.suppress(ImportError, AttributeError):
            importlib.import_module(module).triton_key()
            return


def compile_case(kernel: Kernel, case: Case | Speed, target: GPUTarget) -> list[Any]:
    """The compiled kernels (Triton's ``CompiledKernel``) that one run of ``case`` launches on ``target``.

    Raises RefusedError.
    """
    with compiling(target) as functions:
        launch(kernel, case)
    return [function.compiled for function in functions]


# LLVM prints on standard error what Triton does not raise. Where that is a file, as in the foreman's children, it is
# read again afterwards; it is not redirected, because the last words of a compiler that aborts must stay in it.
STANDARD_ERROR = 2


def _written() -> int:
    return os.fstat(STANDARD_ERROR).st_size


def _written_since(start: int) -> str:
    try:
        return os.pread(STANDARD_ERROR, _written() - start, start).decode(errors="replace")
    except OSError:  # a terminal or a pipe
        return ""
