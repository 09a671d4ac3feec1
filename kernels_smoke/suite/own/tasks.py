"""The tasks about kernels from outside, in a child process of the foreman: find them, and mutate them."""

import contextlib
import importlib
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

import torch

from kernels_smoke.suite import registry
from kernels_smoke.suite.correctness import judge
from kernels_smoke.suite.correctness.autotuning import autotuned
from kernels_smoke.suite.correctness.draw import Draw
from kernels_smoke.suite.correctness.tasks import caught, fault_of, planned
from kernels_smoke.suite.model import Emit, Kernel, Mutant, Where
from kernels_smoke.suite.own import sources
from kernels_smoke.suite.own.launches import launches, replaced, source_of, with_callees
from kernels_smoke.suite.own.mutations import Mutation, mutations, spread

NO_TRITON = "it is not written in Triton, so no mutant of it can be made"
NOT_REACHED = "it changes code that no case reaches"
NO_CASE = "no case of it runs here, so no mutant of it can be judged"
NO_LAUNCH = "its first case launches no Triton function of which the source can be had, so no mutant of it can be made"


def find(emit: Emit, *, source: str) -> None:
    """Import a source, and emit one record: its kernels, or what is wrong with it."""
    try:
        kernels = sources.load(source)
    except sources.OwnKernelsError as error:
        emit({"kind": "family", "source": source, "error": str(error)[:2000], "details": error.details[-2000:]})
        return
    family = sources.family_of(source)
    entries = [
        registry.Entry(kernel.name, family, "from outside", quick=True, source=source, triton=kernel.triton)
        for kernel in kernels.values()
    ]
    emit({"kind": "family", "source": source, "error": "", "kernels": [asdict(entry) for entry in entries]})


def plugins(emit: Emit) -> None:
    """Emit a record with the (source, label) of each entry point that is installed."""
    emit({"kind": "plugins", "found": list(sources.plugins())})


def mutants(
    emit: Emit, *, kernels: Sequence[str], device: Where, seed: int, skip: Sequence[Sequence[str]] = ()
) -> None:
    """Run the cases of each kernel on each mutant until one catches it: those of its author, and automatic ones.

    A mutant is another source of one Triton function that the kernel's first case launches. The kernel itself comes
    first: where it is not right, that a mutant is wrong shows nothing. Deep cases are omitted.
    """
    on_gpu = device == "cuda"
    with autotuned(lambda: emit({"kind": "alive"}), on_gpu=on_gpu):
        for kernel in [registry.load(registry.entry(name)) for name in kernels]:
            cases = tuple(case for case in kernel.cases if case.level != "deep")
            _mutate(emit, replace(kernel, cases=cases), device, seed, skip)


def _mutate(emit: Emit, kernel: Kernel, device: Where, seed: int, skip: Sequence[Sequence[str]]) -> None:
    fault = "" if skip else fault_of(emit, kernel, device, seed)
    found, why = ({}, NO_TRITON) if not kernel.triton else _found(kernel, device, seed)
    record: dict[str, Any] = {"kind": "mutant", "kernel": kernel.name, "caught_by": "", "seconds": 0.0}
    if fault or not found:
        outcome = "skip" if not fault and why in {NO_TRITON, NO_CASE} else "error"
        emit(record | {"mutant": "all", "outcome": outcome, "message": fault or why, "automatic": True})
        emit({"kind": "plan", "items": []})
        return
    for _, mutation in planned(emit, [(kernel, mutant) for mutant, *_ in found.values()], skip):
        mutant, function, source, probe = found[mutation.name]
        begun = time.monotonic()
        record |= {"mutant": mutant.name, "automatic": mutant.old == ""}
        if device not in mutant.where or function is None:
            message = mutant.why if function is not None else source
            outcome = "skip" if function is not None else "error"
            emit(record | {"outcome": outcome, "message": message})
            continue
        module = importlib.import_module(kernel.module)
        with replaced(function, source):
            result, crashed = caught(emit, kernel, module, device, seed)
        if result["outcome"] == "missed" and probe:
            with replaced(function, probe):
                reached, crashed = caught(emit, kernel, module, device, seed)
            if reached["outcome"] == "missed":
                result = {"outcome": "skip", "message": NOT_REACHED}
        emit(record | result | {"seconds": time.monotonic() - begun})
        if crashed:
            return


# By the name of the mutant: it, its Triton function, the changed source, the one that shows whether a case reaches it.
Found = dict[str, tuple[Mutant, Any, str, str]]


def _found(kernel: Kernel, device: Where, seed: int) -> tuple[Found, str]:
    """All mutants of a kernel, and why there isn't one."""
    functions, why = _launched(kernel, device, seed)
    texts = [(function, text) for function in functions if (text := _source(function))]
    found: Found = {}
    for mutant in kernel.mutants:
        places = [(function, text) for function, text in texts if text.count(mutant.old) == 1]
        if len(places) == 1:
            function, text = places[0]
            found[mutant.name] = (mutant, function, text.replace(mutant.old, mutant.new), "")
        else:
            said = f"{mutant.old!r} stands once in {len(places)} of the Triton functions that are launched; expected 1"
            found[mutant.name] = (mutant, None, said, "")
    automatic = [
        (f"{_name(function)}: {mutation.name}", function, mutation)
        for function, text in texts
        for mutation in _mutations(text)
    ]
    some = spread(automatic)
    for name, function, mutation in some:
        mutant = Mutant(name, "", "", where=mutation.where, why=mutation.why)
        found.setdefault(name, (mutant, function, mutation.source, mutation.probe))
    if left := len(automatic) - len(some):
        why = f"{left} of {len(automatic)} automatic mutants are omitted; the limit is {len(some)}"
        found["others"] = (Mutant("others", "", "", where=(), why=why), functions[0], "", "")
    return found, why or NO_LAUNCH


def _launched(kernel: Kernel, device: Where, seed: int) -> tuple[list[Any], str]:
    """The Triton functions that the first case on ``device`` launches, with their callees; why it launches none."""
    case = next((case for case in kernel.cases if device in case.where), None)
    if case is None:
        return [], NO_CASE
    where = "cuda" if device == "cuda" else "cpu"
    draw = Draw(judge.seed_of(seed, kernel.name, case.name), where)
    with launches() as found, contextlib.suppress(Exception):  # what it raises, its cases have said
        kernel.launch(importlib.import_module(kernel.module), dict(kernel.inputs(draw, **case.shape)), {})
        if device == "cuda":
            torch.cuda.synchronize()
    with contextlib.suppress(OSError, ValueError, TypeError, SyntaxError):
        return with_callees(found), ""
    return found, ""


def _source(function: Any) -> str:
    try:
        return source_of(function)
    except (OSError, ValueError, TypeError):
        return ""


def _mutations(text: str) -> Iterator[Mutation]:
    with contextlib.suppress(ValueError, SyntaxError, RecursionError):
        yield from mutations(text)


def _name(function: Any) -> str:
    return str(function.fn.__name__)
