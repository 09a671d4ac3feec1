"""The answer to the doctor's question: does torch compute on the GPU here, or as expected? Pure.

A PASS means: torch was imported in the interpreter in question, and its product was right.
"""

from __future__ import annotations

from collections.abc import Iterator

from wheel_checks.facts.gpu.expected import CPU, HostExpectation, counted
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.presence import gpus_of_build, may_have_gpu, other_gpus
from wheel_checks.facts.host.gpus.seen import gpus_of
from wheel_checks.facts.host.probes import KernelProbe, TorchProbe
from wheel_checks.model import Answer, CheckResult, Outcome, Severity, Unavailable, Verdict
from wheel_checks.phrases import joined, plural
from wheelproof.doctor.diagnosis import Diagnosis
from wheelproof.doctor.phrases import state_phrase

_ABOUT = "this host"
_NOT_PROVEN = "not proven that torch computes on a GPU"
_ON_A_CPU = "wheelproof doctor --expect cpu"


def answer_host(
    facts: HostFacts, diagnosis: Diagnosis, results: tuple[CheckResult, ...], expected: HostExpectation | None
) -> Answer:
    """FAIL if a symptom has a cause, or an error was found; PASS if torch computed; else the way to decide it."""
    errors = [r for r in (diagnosis.root, *diagnosis.others) if r is not None and r.severity is Severity.ERROR]
    open_ = [r for r in results if r.outcome is Outcome.ERROR]
    if diagnosis.symptoms:
        state = state_phrase(diagnosis.symptoms, facts)
        if diagnosis.root is None:
            reasons = tuple(result.message for result in errors)
            sentence = f"{state}, and the cause was not found"
            return Answer(Verdict.FAIL if errors else Verdict.UNDECIDED, sentence, _ABOUT, reasons)
        verdict = Verdict.FAIL if errors else Verdict.UNDECIDED
        message = diagnosis.root.message
        sentence, reasons = (message, ()) if message.startswith(state) else (state, (message,))
        return Answer(verdict, sentence, _ABOUT, reasons, decided_by=(diagnosis.root.rule,))
    if errors:
        rules = tuple(dict.fromkeys(result.rule for result in errors))
        return Answer(Verdict.FAIL, *_what_fails(facts, errors), decided_by=rules)
    if open_:
        reasons = tuple(result.message for result in open_)
        return Answer(
            Verdict.UNDECIDED, _NOT_PROVEN, _ABOUT, reasons, decided_by=tuple(dict.fromkeys(r.rule for r in open_))
        )
    if expected is not None and expected.accelerator == CPU:
        return _on_cpu(facts)
    return _on_gpu(facts)


def _what_fails(facts: HostFacts, errors: list[CheckResult]) -> tuple[str, str, tuple[str, ...]]:
    computes = isinstance(facts.torch, TorchProbe) and facts.torch.computes == ""
    sentence = "torch computes, and something else fails or will" if computes else "something is wrong"
    return sentence, _ABOUT, tuple(result.message for result in errors)


def _on_cpu(facts: HostFacts) -> Answer:
    probe = facts.torch
    if isinstance(probe, Unavailable):
        return Answer(
            Verdict.UNDECIDED, "not proven that torch computes", _ABOUT, (f"it was not tried: {probe.reason}",)
        )
    if probe.computes_on_cpu == "" or probe.computes == "":
        return Answer(Verdict.PASS, f"torch {probe.version} computes on the CPU, as expected", _ABOUT)
    return Answer(
        Verdict.UNDECIDED, "not proven that torch computes on the CPU", _ABOUT, ("the trial did not reach that step",)
    )


def _on_gpu(facts: HostFacts) -> Answer:
    probe, gpus = facts.torch, gpus_of(facts)
    if isinstance(probe, TorchProbe) and probe.computes == "" and probe.available:
        seen = () if isinstance(gpus, Unavailable) else gpus
        name = counted(seen) if seen else plural(probe.devices, "GPU")
        compiles = " and Triton compiles" if isinstance(facts.kernel, KernelProbe) else ""
        if probe.devices > max(probe.computed, 1):
            tried = f"computed on {max(probe.computed, 1)} of {probe.devices}"
            return Answer(
                Verdict.UNDECIDED, f"not proven that torch {probe.version} computes on {name}", _ABOUT, (tried,)
            )
        return Answer(Verdict.PASS, f"torch {probe.version} computes{compiles} on {name}", _ABOUT)
    return Answer(Verdict.UNDECIDED, _NOT_PROVEN, _ABOUT, tuple(_why_not_proven(facts)))


def _why_not_proven(facts: HostFacts) -> Iterator[str]:
    others = {one.maker for one in other_gpus(facts)}
    has_none = not gpus_of_build(facts) and not may_have_gpu(facts)
    if has_none and others:
        torch = None if isinstance(facts.installed, Unavailable) else facts.installed.torch
        build = f"torch {torch.version}" if torch else "torch"
        yield f"the GPU here is {joined(sorted(others))}'s, and {build} does not use it; if that is right: {_ON_A_CPU}"
    elif has_none:
        yield f"no GPU was found here; if none is expected: {_ON_A_CPU}"
    if isinstance(facts.torch, Unavailable):
        yield f"torch was not tried: {facts.torch.reason}"
    elif facts.torch.hurried:
        yield f"timed out during {facts.torch.failed_at} (--timeout)"
    elif facts.torch.available is None:
        yield "the trial did not reach the GPU"
