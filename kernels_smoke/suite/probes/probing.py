"""The tasks that probe the installation itself, before and next to the kernels; ``foreman.py`` says what a task is.

A probe is a function that returns an Answer. Each becomes one record, which is sent as soon as it is there; before it a
record {"kind": "begin", "name": ...} says which one runs, for the obituary of a child that a probe took with it.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kernels_smoke.suite.error_texts import CRASHES
from kernels_smoke.suite.model import Emit
from kernels_smoke.suite.probes import compiler, installation
from kernels_smoke.suite.probes.answer import Answer, first_line, record

Probes = Mapping[str, Callable[[], Answer]]


def basic(emit: Emit, *, device: str, target: str = "", part: str = "") -> None:
    """What every level probes. ``device`` is cuda, interpret, or none for a mere compilation for ``target`` (sm_90).

    With several GPUs each is probed by itself (``part`` gpu), and what they share once (``part`` node).
    """
    if part == "gpu":
        _basic_of_gpu(emit)
        return
    probes: dict[str, Callable[[], Answer]] = {
        "torch": partial(installation.torch_build, device),
        "triton": partial(installation.triton_version, device),
    }
    answers = {name: _ask(emit, name, probe, _broken) for name, probe in probes.items()}
    if any(answer.outcome == "error" for answer in answers.values()):
        return
    if device == "interpret":
        from kernels_smoke.suite.probes import interpreter  # it imports what was just probed

        _ask(emit, "interpreter", interpreter.interpreter, _broken)
        return
    _ask(emit, "jit_cache", installation.jit_cache, _broken)
    if target.startswith("sm_"):
        _ask(emit, "ptxas", partial(installation.ptxas, target), _broken)
    if device == "cuda":
        _ask(emit, "c_compiler", compiler.c_compiler, _broken)
        if answers["torch"].outcome == "pass" and part != "node":
            _basic_of_gpu(emit)


def _basic_of_gpu(emit: Emit) -> None:
    from kernels_smoke.suite.probes import gpu

    _ask_gpu(emit, {**gpu.BASIC, "triton_launcher": compiler.triton_launcher})


def heavy(emit: Emit, *, device: str, target: str = "", names: Sequence[str] = (), slowness: float = 1.0) -> None:
    """The probes that take seconds, for a GPU: nccl, cublas, cudnn, torch_compile; those in ``names`` if it has any."""
    if device != "cuda" or not target:
        return
    from kernels_smoke.suite.probes import libraries, nccl  # they import torch

    # NCCL first: in the compute mode "exclusive process" a context of this process would keep its ranks out.
    probes: dict[str, Callable[[], Answer]] = {"nccl": partial(nccl.nccl, slowness), **libraries.LIBRARIES}
    _ask_gpu(emit, {name: probe for name, probe in probes.items() if not names or name in names})


def _ask_gpu(emit: Emit, probes: Probes) -> None:
    """Run probes one after the other, until one leaves CUDA in a state in which no other can work."""
    from kernels_smoke.suite.probes.gpu import failure

    lost = ""
    for name, probe in probes.items():
        if lost:
            skipped = Answer("skip", f"not tried, because {lost} left CUDA unusable")
            emit(record(name, skipped))
            continue
        answer = _ask(emit, name, probe, failure)
        crashed = any(text in answer.evidence.get("error", "") for text in CRASHES)
        if crashed or (name == "cuda_init" and answer.outcome != "pass"):
            lost = name


def _ask(emit: Emit, name: str, probe: Callable[[], Answer], explain: Callable[[Exception], Answer]) -> Answer:
    """Run one probe and send its record; ``explain`` says what an exception that it lets through means."""
    emit({"kind": "begin", "name": name})
    begun = time.monotonic()
    try:
        answer = probe()
    except Exception as error:  # drivers and libraries raise anything
        answer = explain(error)
    emit(record(name, answer, time.monotonic() - begun))
    return answer


def _broken(error: Exception) -> Answer:
    """A probe of the installation foresees what may fail; what it did not foresee is its own fault."""
    return Answer("error", f"the probe itself broke: {type(error).__name__}: {first_line(error)}")
