"""The tasks that probe the installation itself, before and beside the kernels; ``foreman.py`` says what a task is.

A probe is a function that returns an Answer. Each becomes one record, which is sent as soon as it is there; before it a
record {"kind": "begin", "name": ...} says which one runs, for the obituary of a child that a probe took with it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kernels_smoke.suite.foreman import Emit
from kernels_smoke.suite.probes import compiler as probes_compiler
from kernels_smoke.suite.probes import installation as probes_installation
from kernels_smoke.suite.probes.answer import Answer, first_line, record

Probes = Mapping[str, Callable[[], Answer]]


def basic(emit: Emit, *, device: str, target: str = "") -> None:
    """What every level probes. ``device`` is cuda, interpret, or none for a mere compilation for ``target`` (sm_90)."""
    probes: dict[str, Callable[[], Answer]] = {
        "torch": partial(probes_installation.torch_build, device),
        "triton": partial(probes_installation.triton_version, device),
    }
    answers = {name: _ask(emit, name, probe, _broken) for name, probe in probes.items()}
    if any(answer.outcome == "error" for answer in answers.values()):
        return
    if device == "interpret":
        from kernels_smoke.suite.probes import interpreter as probes_interpreter  # noqa: PLC0415  # it imports what was just probed

        _ask(emit, "interpreter", probes_interpreter.interpreter, _broken)
        return
    _ask(emit, "jit_cache", probes_installation.jit_cache, _broken)
    if target.startswith("sm_"):
        _ask(emit, "ptxas", partial(probes_installation.ptxas, target), _broken)
    if device == "cuda":
        _ask(emit, "c_compiler", probes_compiler.c_compiler, _broken)
        if answers["torch"].outcome == "pass":
            from kernels_smoke.suite.probes import gpu as probes_gpu  # noqa: PLC0415  # likewise

            _ask_gpu(emit, {**probes_gpu.BASIC, "triton_launcher": probes_compiler.triton_launcher})


def heavy(emit: Emit, *, device: str, target: str = "", names: Sequence[str] = (), slowness: float = 1.0) -> None:
    """The probes that take seconds, for a GPU: nccl, cublas, cudnn, torch_compile; those in ``names`` if it has any."""
    if device != "cuda" or not target:
        return
    from kernels_smoke.suite.probes import libraries as probes_libraries  # noqa: PLC0415  # they import torch
    from kernels_smoke.suite.probes import nccl as probes_nccl  # noqa: PLC0415  # they import torch

    # NCCL first: in the compute mode "exclusive process" a context of this process would keep its ranks out.
    probes: dict[str, Callable[[], Answer]] = {
        "nccl": partial(probes_nccl.nccl, slowness),
        **probes_libraries.LIBRARIES,
    }
    _ask_gpu(emit, {name: probe for name, probe in probes.items() if not names or name in names})


def _ask_gpu(emit: Emit, probes: Probes) -> None:
    """Run probes one after the other, until one leaves CUDA in a state in which no other can work."""
    from kernels_smoke.suite.correctness import CRASHES  # noqa: PLC0415  # it imports torch
    from kernels_smoke.suite.probes.gpu import failure  # noqa: PLC0415  # likewise

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
    except Exception as error:  # noqa: BLE001  # drivers and libraries raise anything
        answer = explain(error)
    emit(record(name, answer, time.monotonic() - begun))
    return answer


def _broken(error: Exception) -> Answer:
    """A probe of the installation foresees what may fail; what it did not foresee is a fault of its own."""
    return Answer("error", f"the probe itself broke: {type(error).__name__}: {first_line(error)}")
