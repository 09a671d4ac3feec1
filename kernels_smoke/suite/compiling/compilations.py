"""The tasks that compile for a GPU, in a child process of the foreman."""

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from typing import Any

import triton

from kernels_smoke.suite import registry
from kernels_smoke.suite.compiling import compile_faults, machine_code
from kernels_smoke.suite.compiling.ahead_of_time import (
    Function,
    RefusedError,
    claiming,
    compile_case,
    compiling,
    launch,
    target_of,
)
from kernels_smoke.suite.correctness.autotuning import autotuned
from kernels_smoke.suite.model import Case, Emit, Kernel, Level, Speed, runs
from kernels_smoke.suite.probes.answer import first_line

Record = dict[str, Any]


@triton.jit
def _nothing_kernel():
    pass


def precompile(
    emit: Emit, *, kernel: str, target: str, level: Level, part: str = "", share: int = 0, shares: int = 1
) -> None:
    """Fill Triton's cache with all that a run of ``kernel`` at ``level`` will launch on this machine's GPU.

    ``part`` says whether that is what is "timed" or the "cases"; both when it is empty.
    This child takes one of ``shares`` equal parts of the cases, so that several children work side by side. What
    another child of the same process compiles is not compiled here, too.
    What cannot be compiled is no matter here: the case itself will meet it, and say so.
    """
    subject = registry.load(registry.entry(kernel))
    items = _items(subject, level, speeds=level != "quick")
    if part:
        items = [item for item in items if isinstance(item, Speed) == (part == "timed")]
    with claiming():
        for item in items[share::shares]:
            emit({"kind": "begin", "kernel": kernel, "case": item.name})  # a sign of life
            with contextlib.suppress(Exception):
                fill_cache(subject, item, target)


def fill_cache(kernel: Kernel, item: Case | Speed, target: str) -> None:
    """Fill Triton's cache with all that ``item`` launches on a GPU of this machine."""
    for compiled in compile_case(kernel, item, target_of(target)):
        _build_launcher(compiled)


def _build_launcher(compiled: Any) -> None:
    """Triton 3.6 and older build a launcher in C for each signature, at the first launch; later ones need no such."""
    from triton.backends.nvidia.driver import CudaLauncher  # not where AMD alone is compiled for

    with contextlib.suppress(Exception):  # 3.7 asks a driver that is not here
        CudaLauncher(compiled.src, compiled.metadata)


def compile_kernels(emit: Emit, *, kernel: str, target: str, level: Level, skip: Sequence[Sequence[str]] = ()) -> None:
    """Compile ``kernel`` for ``target`` and emit a "compiled" record for each distinct device function.

    What is compiled are its timed shapes and the cases of ``level``, but those in ``skip``; what Triton specialises
    alike is compiled once. Each case is announced by a record of kind "begin" and followed by one of kind "end": when a
    compiler takes this process with it, the last one announced was the cause.

    The machine code holds no line numbers, which would name the folders of this machine: the same Triton makes the same
    bytes everywhere, and ``sha256`` shows it. A warm cache will do, since Triton keeps everything that is read here.
    """
    os.environ["TRITON_DISABLE_LINE_INFO"] = "1"
    with autotuned(lambda: emit({"kind": "alive"}), on_gpu=False):
        compile_kernel(emit, registry.load(registry.entry(kernel)), target, level, skip)


def compile_kernel(emit: Emit, kernel: Kernel, target: str, level: Level, skip: Sequence[Sequence[str]] = ()) -> None:
    """The same, of a kernel that need not be registered, with line numbers if Triton is set so."""
    if stranger := _stranger(target):
        emit({"kind": "compiled", "kernel": kernel.name, "case": "", "target": target, "seconds": 0.0, **stranger})
        return
    done = {tuple(item) for item in skip}
    items = [item for item in _items(kernel, level, speeds=True) if (kernel.name, item.name) not in done]
    launched = False
    emit({"kind": "plan", "items": [(kernel.name, item.name) for item in items]})
    seen: set[str] = set()
    for item in items:
        names = {"kernel": kernel.name, "case": item.name, "target": target}
        emit({"kind": "begin", **names})
        for record in _compile(kernel, item, target, seen):
            launched = True
            emit({"kind": "compiled", **names, **record})
        emit({"kind": "end", **names})
    if not launched and not skip:
        message = "it launched no Triton function, so nothing was compiled; see triton=False if it is not Triton"
        record = {"case": "", "outcome": "error", "message": message, "faults": [], "seconds": 0.0}
        emit({"kind": "compiled", "kernel": kernel.name, "target": target, **record})


def _stranger(target: str) -> Record | None:
    """What is wrong when not even an empty kernel compiles: LLVM may abort on others for a target it does not know."""
    with compiling(target_of(target)):
        try:
            _nothing_kernel[(1,)]()
        except RefusedError as error:
            return _refusal(error, target)
    return None


def _items(kernel: Kernel, level: Level, *, speeds: bool) -> list[Case | Speed]:
    """The timed shapes, which matter most, and then the cases that run on a GPU."""
    timed = [speed for speed in kernel.speeds if speeds and (speed.level != "deep" or level == "deep")]
    return [*timed, *(case for case in kernel.cases if runs(case, "cuda", level))]


def _compile(kernel: Kernel, item: Case | Speed, target: str, seen: set[str]) -> Iterator[Record]:
    """A record for each function that ``item`` launches and that is not in ``seen``, and one for what failed."""
    start = time.monotonic()
    failure: Record | None = None
    with compiling(target_of(target)) as functions:
        try:
            launch(kernel, item)
        except RefusedError as error:
            failure = _refusal(error, target)
        except Exception as error:  # a fault of ours or of torch's: no verdict about the compiler
            said = f"{type(error).__name__}: {first_line(error)}"
            if kernel.returns:
                said = (
                    f"it cannot be called with tensors that have no values, as compiling for another GPU does: {said}"
                )
            failure = {"outcome": "error", "message": said, "faults": []}
    seconds = time.monotonic() - start
    multiply = compile_faults.must_multiply(kernel, functions)
    for function in functions:
        if function.compiled.hash not in seen:
            seen.add(function.compiled.hash)
            role = {"timed": isinstance(item, Speed), "multiplies": function in multiply}
            yield _judged(kernel, function, target, **role) | {"seconds": seconds}
            seconds = 0.0  # the first function has that of all functions of the case
    if failure:
        yield failure | {"seconds": seconds}


def _refusal(error: RefusedError, target: str) -> Record:
    fault = compile_faults.refusal(error, target)
    return {
        # what the GPU lacks is not a fault of the installation
        "outcome": "skip" if fault["fault"] == "unsupported" else "fail",
        "message": fault["message"],
        "function": error.function,
        "faults": [fault],
        "evidence": {"compiler": compile_faults.last_words(error)} if fault["fault"] == "refused" else {},
    }


def _judged(kernel: Kernel, function: Function, target: str, *, timed: bool, multiplies: bool) -> Record:
    compiled = function.compiled
    code = machine_code.read(compiled.asm, compiled.metadata.shared)
    faults = compile_faults.faults_of(kernel, function, code, target, timed=timed, multiplies=multiplies)
    outcome, message = "pass", ""
    if faults:
        outcome, message = "fail", str(faults[0]["message"])
    elif code.unread:
        outcome, message = "skip", f"it compiles; its machine code was not looked into: {code.unread}"
    else:
        message = compile_faults.conversion(function, target)
    return {
        "outcome": outcome,
        "message": message,
        "function": function.name,
        "faults": faults,
        "registers": code.registers,
        "stack_bytes": code.stack,
        "spill_bytes": code.spills,
        "shared_bytes": code.shared,
        "instructions": list(code.instructions),
        "warps": compiled.metadata.num_warps,
        "machine_code_bytes": code.size,
        "sha256": code.sha256,
        "evidence": {"instructions taken from the PTX": code.from_ptx} if code.from_ptx else {},
    }
