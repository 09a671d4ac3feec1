"""The tasks that run cases and mutants, in a child process of the foreman."""

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

import torch

from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness.autotuning import autotuned
from kernels_smoke.suite.correctness.judge import judge
from kernels_smoke.suite.correctness.mutants import broken, launched
from kernels_smoke.suite.error_texts import CRASHES, NOT_ON_THIS_GPU, AuthorError
from kernels_smoke.suite.model import LEVELS, Case, Emit, Kernel, Level, Mutant, Speed, Where, runs
from kernels_smoke.suite.probes.answer import first_line

NO_MEMORY = "the GPU's memory does not suffice"
TRIES, PAUSE = 60, 1.0  # seconds: how often, and how long, one waits for the memory that others have
MEMORY = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED")  # what an error says when there is too little
KEPT = 2 * 10**9  # bytes that a child keeps from one case to the next: other children use the same GPU
FAR_MEMORY = 40 * 10**9  # bytes of a GPU that runs cases with offsets beyond 32 bits, the largest of which takes 13


def cases(
    emit: Emit, *, kernels: Sequence[str], level: Level, device: Where, seed: int, skip: Sequence[Sequence[str]] = ()
) -> None:
    """Run the cases of ``kernels`` that ``level`` has, but those in ``skip``.

    Stops after one that crashed, because nothing can be believed after it.
    """
    subjects = [registry.load(registry.entry(name)) for name in kernels]
    items = [(kernel, case) for kernel in subjects for case in kernel.cases if runs(case, device, level)]
    for kernel in subjects if not skip else ():  # a child that continues behind another has nothing new to say
        for left in left_out(kernel, device, level):
            emit(left)
    for kernel in subjects if device == "interpret" and not skip else ():
        for record in not_interpreted(kernel):
            emit(record)
    tries = TRIES
    with autotuned(lambda: emit({"kind": "alive"}), on_gpu=device == "cuda"):
        for kernel, case in planned(emit, items, skip):
            result = _too_far() if case.far else None
            if result is None:
                result = _with_patience(emit, kernel, case, device, seed, tries=tries)
                tries = 0 if NO_MEMORY in result["message"] else tries  # who waited in vain does not wait again
            record = {"kind": "case", "kernel": kernel.name, "case": case.name, **result}
            emit(record)
            if record["outcome"] == "crash":
                return


def left_out(kernel: Kernel, device: Where, level: Level) -> Iterator[dict[str, Any]]:
    """Records of the cases of ``kernel`` that a GPU can run and this level does not, by what runs them."""
    left = [case for case in kernel.cases if device in case.where and not runs(case, device, level)]
    for needed in LEVELS:
        names = [case.name for case in left if next(each for each in LEVELS if runs(case, device, each)) == needed]
        if names:
            yield {"kind": "left_out", "kernel": kernel.name, "cases": names, "level": needed}


def not_interpreted(kernel: Kernel) -> Iterator[dict[str, Any]]:
    """A record that says why the interpreter runs nothing of ``kernel``, if that is so."""
    if not any("interpret" in case.where for case in kernel.cases):
        why = "it has no case for Triton's interpreter, see here() in kernels_smoke.suite.model"
        if not kernel.triton:
            why = "it is not written in Triton, so Triton's interpreter cannot run it"
        yield {"kind": "case", "kernel": kernel.name, "case": "interpreted", "outcome": "skip", "message": why}


def healthy(emit: Emit, *, kernel: str, device: Where, seed: int) -> None:
    """Run the cases of ``kernel`` itself; one record of kind "healthy" says what is wrong, and which mutants it has."""
    subject = registry.load(registry.entry(kernel))
    fault, names = fault_of(emit, subject, device, seed), [mutant.name for mutant in subject.mutants]
    emit({"kind": "healthy", "kernel": kernel, "fault": fault, "mutants": names})


def mutants(
    emit: Emit,
    *,
    kernels: Sequence[str],
    device: Where,
    seed: int,
    only: Sequence[str] = (),
    fault: str = "",
    skip: Sequence[Sequence[str]] = (),
) -> None:
    """Run the cases of each kernel on its mutants (those named in ``only`` if it has any) until one catches it.

    ``fault`` is what is wrong with the kernel itself: then that a mutant is wrong shows nothing, and all are errors.
    """
    subjects = [registry.load(registry.entry(name)) for name in kernels]
    items = [(kernel, mutant) for kernel in subjects for mutant in kernel.mutants if not only or mutant.name in only]
    with tempfile.TemporaryDirectory(prefix="kernels-smoke-") as folder:
        for kernel, mutant in planned(emit, items, skip):
            start = time.monotonic()
            record = {"kind": "mutant", "kernel": kernel.name, "mutant": mutant.name, "caught_by": ""}
            if device not in mutant.where:
                emit(record | {"outcome": "skip", "message": mutant.why, "seconds": 0.0})
                continue
            if fault:
                emit(record | {"outcome": "error", "message": fault, "seconds": 0.0})
                continue
            found, crashed = caught(emit, kernel, broken(kernel, mutant, Path(folder)), device, seed)
            emit(record | found | {"seconds": time.monotonic() - start})
            if crashed:
                return


def fault_of(emit: Emit, kernel: Kernel, device: Where, seed: int) -> str:
    """What is wrong with the kernel itself, by its first case that does not pass; empty when all pass."""
    for case in (case for case in kernel.cases if device in case.where and case.level != "deep"):
        emit({"kind": "alive"})
        result = _with_patience(emit, kernel, case, device, seed, tries=TRIES)
        if result["outcome"] not in {"pass", "skip"}:
            return f"the kernel itself is not right: {case.name}: {result['outcome']}: {result['message']}"
    return ""


Named = TypeVar("Named", Case, Mutant, Speed)


def planned(
    emit: Emit, items: Sequence[tuple[Kernel, Named]], skip: Sequence[Sequence[str]]
) -> Iterator[tuple[Kernel, Named]]:
    """The items that are not in ``skip``, each announced before it is run."""
    done = {tuple(item) for item in skip}
    left = [(kernel, item) for kernel, item in items if (kernel.name, item.name) not in done]
    emit({"kind": "plan", "items": [(kernel.name, item.name) for kernel, item in left]})
    for kernel, item in left:
        emit({"kind": "begin", "kernel": kernel.name, "case": item.name})
        yield kernel, item


def caught(emit: Emit, kernel: Kernel, module: ModuleType, device: Where, seed: int) -> tuple[dict[str, Any], bool]:
    """What became of a mutant, and whether the process cannot continue.

    Only a wrong result or a crash catches it. One that does not compile shows nothing; one that has too little memory
    waits for that of the other mutants, which run at the same time.
    """
    cases = [case for case in kernel.cases if device in case.where]
    shown = {"outcome": "missed", "message": "every case passed"}
    for case in sorted(cases, key=lambda case: LEVELS.index(case.level)):  # what takes long comes last
        emit({"kind": "alive"})  # patience is for a case, not for all of them
        result = _with_patience(emit, kernel, case, device, seed, module, tries=TRIES)
        if result["outcome"] in {"wrong", "crash"}:
            found = {"outcome": "caught", "caught_by": case.name, "message": result["message"]}
            return found, result["outcome"] == "crash"
        if result["outcome"] in {"refused", "error"} and shown["outcome"] == "missed":
            shown = {"outcome": "error", "message": f"{case.name} could not be run: {result['message']}"}
    if shown["outcome"] == "missed" and not launched(module):
        shown = {"outcome": "skip", "message": "no case launches its kernel here: this GPU has another one"}
    return shown, False


def _too_far() -> dict[str, Any] | None:
    """The result of a case that takes gigabytes (``Case.far``) on a GPU that has too few; None where it has enough."""
    total = torch.cuda.get_device_properties().total_memory
    if total >= FAR_MEMORY:
        return None
    needed = f"it needs a GPU with {FAR_MEMORY / 1e9:.0f} GB of memory, and this one has {total / 1e9:.0f}"
    return {"outcome": "skip", "message": needed, "outputs": {}, "seconds": 0.0}


def _with_patience(
    emit: Emit,
    kernel: Kernel,
    case: Case,
    device: Where,
    seed: int,
    module: ModuleType | None = None,
    *,
    tries: int = 0,
) -> dict[str, Any]:
    """The result of a case that waits for memory while other children have it, ``tries`` times at most.

    Memory beyond ``KEPT`` bytes is given back afterwards.
    """
    result = run(kernel, case, device, seed, module)
    for _ in range(tries):
        if NO_MEMORY not in result["message"]:
            break
        emit({"kind": "alive"})
        time.sleep(PAUSE)
        torch.cuda.empty_cache()
        result = run(kernel, case, device, seed, module)
    crashed = result["outcome"] == "crash"  # behind which CUDA answers nothing
    if device == "cuda" and not crashed and torch.cuda.memory_reserved() > KEPT:
        torch.cuda.empty_cache()
    return result


def run(kernel: Kernel, case: Case, device: Where, seed: int, module: ModuleType | None = None) -> dict[str, Any]:
    """The result of one case, whatever it raises, as a record without its names."""
    start = time.monotonic()
    if device == "interpret":
        torch.set_num_threads(1)  # for tensors this small, threads wait for each other longer than they work
    try:
        result = judge(kernel, case, device="cuda" if device == "cuda" else "cpu", seed=seed, module=module)
    except Exception as error:  # compilers and drivers raise anything; each is a result
        result = {**_failure(error), "outputs": {}}
    return {**result, "seconds": time.monotonic() - start}


def _failure(error: Exception) -> dict[str, Any]:
    if isinstance(error, AuthorError):
        return {"outcome": "error", "message": first_line(error), "evidence": {"error": str(error)[-2000:]}}
    said = f"{type(error).__name__}: {error}".strip()
    if any(text in said for text in CRASHES):
        return {"outcome": "crash", "message": first_line(said), "evidence": {"error": said[-2000:]}}
    if any(text in said for text in NOT_ON_THIS_GPU):
        return {"outcome": "skip", "message": "this GPU has no fp8 (e4m3) arithmetic"}
    if any(text in said for text in MEMORY):
        return {"outcome": "error", "message": f"{NO_MEMORY}: {first_line(said).partition('. GPU')[0]}"}
    return {"outcome": "refused", "message": first_line(said), "evidence": {"error": said[-2000:]}}
