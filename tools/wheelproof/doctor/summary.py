"""The diagnosis as a report: the verdict first, then the cause with its proof and fix, then what else was found."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from wheel_checks.catalogue import select_rules
from wheel_checks.commands import Command, option, run, shell
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.host.codec import to_json
from wheel_checks.facts.host.comparable import comparable
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import other_gpus
from wheel_checks.facts.host.seen import gpus_of
from wheel_checks.facts.host.unexplained import UnexplainedSymptom
from wheel_checks.model import CheckResult, Outcome, Overview, Severity, Subject, Table, Unavailable
from wheel_checks.report.wording import flat_facts
from wheel_checks.runner import run_rules
from wheelproof.doctor.diagnosis import LIKELY, Diagnosis
from wheelproof.doctor.phrases import observed, symptom_phrase

_MATTERS = ("torchvision", "torchaudio", "triton", "pytorch-triton")  # distributions whose versions are shown
_LIBRARIES = ("nvidia-cudnn-", "nvidia-nccl-")


def subject(name: str, facts: HostFacts, diagnosis: Diagnosis, results: Sequence[CheckResult]) -> Subject:
    """The host as a subject: its results with the root first, and consequences reduced to one line each."""
    ordered = [*_ordered(diagnosis), *(result for result in results if result.outcome is not Outcome.FAIL)]
    told = {**diagnosis_facts(diagnosis), "versions": dict(versions(facts)), "machine": comparable(facts)}
    if facts.probes:
        told["probes"] = to_json(facts)["probes"]
    return Subject(name, "host", identity_phrase(facts), told, (*ordered, *_unexplained(facts, diagnosis)))


def diagnosis_facts(diagnosis: Diagnosis) -> dict[str, Any]:
    """The diagnosis for programs; rules are named by their ids."""
    return {
        "root": diagnosis.root.rule if diagnosis.root else None,
        "catalogue": diagnosis.cause.catalogue if diagnosis.cause else "",
        "confidence": diagnosis.confidence,
        "proof": [asdict(evidence) for evidence in diagnosis.proof],
        "symptoms": list(diagnosis.symptoms),
        "consequences": [result.rule for result in diagnosis.consequences],
        "others": [result.rule for result in diagnosis.others],
        "unexplained": list(diagnosis.unexplained),
        "harmless": [result.rule for result in diagnosis.harmless],
    }


def overview(facts: HostFacts, diagnosis: Diagnosis, *, detail: bool = False, more: Sequence[str] = ()) -> Overview:
    """Headline, the versions that matter, what to do next; with ``detail`` every fact; ``more`` are further notes."""
    tables = [Table("What matters here", ("what", "value"), tuple(versions(facts)))] if detail else []
    if detail:
        tables.append(Table("All facts", ("fact", "value"), tuple(flat_facts(to_json(facts)))))
    return Overview(identity_phrase(facts), tuple(tables), notes=(*_notes(facts, diagnosis), *more))


def identity_phrase(facts: HostFacts) -> str:
    """Which host this is, in few words: ``NVIDIA H200 (9.0), driver 580.159.04, torch 2.11.0+cu130, Python 3.12.3``."""
    parts = [_gpus(facts) or "no GPU"]
    if not isinstance(facts.driver, Unavailable) and facts.driver.version:
        parts.append(f"driver {facts.driver.version}")
    if not isinstance(facts.installed, Unavailable):
        parts.append(f"torch {facts.installed.torch.version}" if facts.installed.torch else "no torch")
    if not isinstance(facts.interpreter, Unavailable):
        parts.append(f"Python {facts.interpreter.version}")
    return ", ".join(parts)


def versions(facts: HostFacts) -> Iterator[tuple[str, str]]:
    """What one looks at first, as rows of name and value; what was not read is omitted."""
    if gpus := _gpus(facts):
        yield "GPU", gpus
    if driver := _driver(facts):
        yield "driver", driver
    if not isinstance(facts.interpreter, Unavailable):
        python = facts.interpreter
        yield "Python", f"{python.version}, {python.path} ({python.found})"
    if not isinstance(facts.installed, Unavailable):
        if torch := facts.installed.torch:
            yield "torch", f"{torch.version} ({_build(torch.cuda, torch.hip, torch.xpu)})"
        shown = (p for p in facts.installed.packages if p.name in _MATTERS or p.name.startswith(_LIBRARIES))
        yield from ((package.name, package.version) for package in shown)
    if not isinstance(facts.system, Unavailable):
        system = facts.system
        parts = (system.os_name, system.machine, f"kernel {system.kernel}" * bool(system.kernel), " ".join(system.libc))
        yield "system", ", ".join(part for part in parts if part.strip())
    if not isinstance(facts.container, Unavailable) and facts.container.kind:
        yield "container", facts.container.kind


def _ordered(diagnosis: Diagnosis) -> Iterator[CheckResult]:
    if diagnosis.root:
        yield replace(diagnosis.root, evidence=diagnosis.proof)
    for result in diagnosis.others:
        yield result
    for result in diagnosis.consequences:
        assert diagnosis.root is not None  # noqa: S101  # consequences are those of a root
        message = f"explained by {diagnosis.root.rule}: {result.message}"
        yield replace(result, severity=Severity.NOTE, message=message, evidence=(), fix=None)
    yield from diagnosis.harmless


def _unexplained(facts: HostFacts, diagnosis: Diagnosis) -> Iterator[CheckResult]:
    """Nothing when a root was found: what it does not explain is reported as a note of the report."""
    if diagnosis.root:
        return
    for name in diagnosis.unexplained:
        symptom = UnexplainedSymptom(name, symptom_phrase(name, facts), observed(name, facts))
        yield from run_rules(select_rules("symptom"), symptom, Expectations())


def _notes(facts: HostFacts, diagnosis: Diagnosis) -> Iterator[str]:
    rest = [name for name in diagnosis.unexplained if diagnosis.root]
    if rest:
        phrases = ", ".join(symptom_phrase(name, facts) for name in rest)
        yield f"The root cause does not explain everything: {phrases}. Fix it first, then run the doctor again."
    if diagnosis.root:
        python = () if isinstance(facts.interpreter, Unavailable) else option("--python", facts.interpreter.path)
        again = run("wheelproof", "doctor", python)
        if isinstance(again, Command):
            yield f"Afterwards: {shell(again)}"
    unsure = diagnosis.unexplained or diagnosis.confidence == LIKELY
    if unsure and not isinstance(facts.system, Unavailable) and not facts.system.root:
        yield "Run as root to include the kernel log and devices that this user cannot open."


def _gpus(facts: HostFacts) -> str:
    """Such as ``8 x NVIDIA H200 (9.0)``; where torch could use none, those of other makers on the bus."""
    gpus = gpus_of(facts)
    names = [] if isinstance(gpus, Unavailable) else list(map(str, gpus))
    names = names or [f"{one.maker} GPU {one.vendor}:{one.device}" for one in other_gpus(facts)]
    return ", ".join(f"{count} x {name}" if count > 1 else name for name, count in Counter(names).items())


def _driver(facts: HostFacts) -> str:
    driver = facts.driver
    if isinstance(driver, Unavailable) or not driver.version:
        return ""
    parts = [driver.version]
    if driver.open is not None:
        parts.append("open kernel module" if driver.open else "proprietary kernel module")
    if not isinstance(facts.cuda, Unavailable) and facts.cuda.driver_cuda:
        parts.append(f"CUDA {facts.cuda.driver_cuda // 1000}.{facts.cuda.driver_cuda % 1000 // 10}")
    return ", ".join(parts)


def _build(cuda: str, hip: str, xpu: str) -> str:
    named: Mapping[str, str] = {"CUDA": cuda, "ROCm": hip, "XPU": xpu}
    return next((f"{name} {version}" for name, version in named.items() if version), "CPU")
