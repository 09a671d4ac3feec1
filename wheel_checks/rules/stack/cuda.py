"""Do the packages of the stack fit: one major version of CUDA, and companions of torch for its accelerator?"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from wheel_checks.data import load
from wheel_checks.facts.accelerator.meaning import runtime_match
from wheel_checks.facts.accelerator.shown import NAMES, Shown
from wheel_checks.facts.accelerator.signals import CPU, CUDA, GPU
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.pins.families import family
from wheel_checks.facts.stack.facts import StackFacts, StackPackage
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.parsing import specifiers_or_none
from wheel_checks.phrases import joined
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.accelerator import (
    contradict,
)
from wheel_checks.rules.stack.demands import demands

stack_rule = rules_of("stack", Audience.INSTALLER)

_COMPANIONS = ("torchvision", "torchaudio")  # built against the libraries of one torch, and for its accelerator
_FOR_ONE_CUDA = re.compile(r"(.+)-cu(\d{2})")
_SHOWN = 6
_BRING_CUDA = Fix("Check the package with the extra that adds CUDA.")


@stack_rule(
    "STK104",
    "packages built for CUDA find their major version in the stack",
    why="A library for CUDA 12 does not load in a stack with only CUDA 13, and an extension for another major version "
    "than torch's leads to two runtimes and two sets of handles in one process. Runtimes of two major versions may be "
    "installed together, each for its own packages; but cuDNN, NCCL and others for both install the same files. Where "
    "a package requires the same library for several CUDA versions, including the stack's, the others are a warning. A "
    "package with libraries for several CUDA versions, but none for the stack's, may continue without one: "
    "bitsandbytes does, on the CPU.",
    example="torch built for CUDA 13.0 with an extension that needs libcudart.so.12",
    fix="Use builds for one major version of CUDA, from one index.",
)
def one_cuda_major(stack: StackFacts, expectations: Expectations) -> Iterable[Finding]:
    """Packages on torch agree with it, others find their libraries, and no two runtime packages have the same files.

    If a GPU is requested and the stack has no CUDA at all, packages that need it are undecided: only the system can
    provide it, and without it such a package works silently on the CPU (onnxruntime-gpu).
    """
    fix = Fix("Use builds for one major version of CUDA, and find out what requires the other one.")
    yield from _overwriting(stack, fix)
    there = _cuda_majors(stack)
    if not there:
        yield from _without_cuda(stack, expectations)
    torch = stack.package("torch")
    for package in stack.packages:
        needs = _needs(package)
        needed, built = {need.version for need in needs}, _majors_built_for(package, stack)
        if package.name in _COMPANIONS or not (there and (needed or built)):
            continue
        what = (
            f"needs {needs[0].what}, of CUDA {joined(sorted(needed, key=int))}"
            if needs
            else f"is built for {_label(package)}"
        )
        evidence = tuple(Evidence("needed", str(item), package.file_name) for item in needs[:_SHOWN])
        evidence += tuple(Evidence(f"CUDA {major}", who, "stack") for major, who in there.items())
        evidence += demands(package)
        if not needs and (named := _named(package)):
            what += f" ({named})"
        of_torch = _cuda(torch).partition(".")[0] if torch else ""
        differs = bool(built and of_torch) and of_torch not in (needed or built)
        if differs and len(needed) > 1 and needed.isdisjoint(there):
            message = f"{package.label} {what}, of which it uses one; the stack is for CUDA {joined(list(there))}"
            message += ", and it is unknown whether it works without one"
            yield Finding(message, evidence, fix, package.place, undecided=True)
        elif differs and (not needed or needed.isdisjoint(there)):
            message = f"{package.label} {what}; the stack is for CUDA {joined(list(there))}"
            severity = None
            if twin := _twin_for(package, stack, of_torch):
                message, severity = f"{message}, which {twin.label} supports", Severity.WARNING
            yield Finding(message, evidence, fix, package.place, severity)
        elif differs:
            message = f"not proven that {package.label}, which {what}, works with torch for CUDA {of_torch}"
            yield Finding(message, evidence, fix, package.place, undecided=True)
        elif needed and needed.isdisjoint(there):
            message = f"{package.label} {what}, which no package of the stack contains: only the system can provide it"
            yield Finding(message, evidence, fix, package.place, undecided=True)


def _overwriting(stack: StackFacts, fix: Fix) -> Iterator[Finding]:
    """One finding for each library with builds for two major versions in the stack."""
    for twins in _twins(stack):
        names = joined([package.label for package in twins])
        evidence = tuple(item for package in twins for item in demands(package)[:1])
        message = f"{names} install files with the same paths: one overwrites the other"
        yield Finding(message, evidence, fix, twins[0].place)


def _without_cuda(stack: StackFacts, expectations: Expectations) -> Iterator[Finding]:
    if stack.lock is not None or not any(gpu.sm for gpu in expectations.gpus):
        return  # conda may provide it; or no GPU was requested
    for package in stack.packages:
        needs, facts = _needs(package), package.known_accelerator
        if runtime_match(package.name) is not None or facts is None or facts.accelerator != CUDA:
            continue
        if not needs and not package.cuda_extras:
            continue
        what = f"needs {needs[0].what}" if needs else f"gets CUDA from its extra {joined(package.cuda_extras)}"
        evidence = [Evidence("needed", str(item), package.file_name) for item in needs[:_SHOWN]]
        evidence += [Evidence("extra that brings it", extra, "METADATA") for extra in package.cuda_extras]
        message = f"{package.label} {what}, but no package of the stack contains CUDA: only the system can provide it"
        yield Finding(message, tuple(evidence), _BRING_CUDA, package.place, undecided=True)


def _twins(stack: StackFacts) -> Iterator[list[StackPackage]]:
    """The packages that are one library for two major versions of CUDA, and have the same paths."""
    found: dict[str, list[StackPackage]] = {}
    pattern = re.compile(load("accelerators")["same_paths"]["pattern"])
    for package in stack.packages:
        if match := pattern.fullmatch(package.name):
            found.setdefault(match[1], []).append(package)
    return (packages for packages in found.values() if len(packages) > 1)


def _twin_for(package: StackPackage, stack: StackFacts, major: str) -> StackPackage | None:
    """The package of the same name for this CUDA, if only others require both (nixl requires one for each CUDA)."""
    match = _FOR_ONE_CUDA.fullmatch(package.name)
    if match is None or match[2] == major or not all(demand.by for demand in package.demands):
        return None
    return stack.package(f"{match[1]}-cu{major}")


def _needs(package: StackPackage) -> Sequence[Shown]:
    """The CUDA libraries that the package needs and does not provide; of several majors any one suffices."""
    facts = package.known_accelerator
    return facts.content.needs_from_outside(CUDA) if facts and facts.content else ()


def _majors_built_for(package: StackPackage, stack: StackFacts) -> set[str]:
    """The majors of CUDA that a package on torch is built for; none that only its requirements name.

    Some packages on torch do not require it (``families.toml``).
    """
    torch, facts = stack.package("torch"), package.known_accelerator
    requires_torch = torch is not None and (
        any(d.by == package.label for d in torch.demands) or package.name in family("torch").silent
    )
    if not requires_torch or facts is None or facts.accelerator != CUDA or CUDA in facts.declared:
        return set()
    return set(facts.majors) or {facts.version.partition(".")[0]} - {""}


def _named(package: StackPackage) -> str:
    """The CUDA in the package's name, if its needs are unknown; or ""."""
    facts = package.known_accelerator
    shown = facts.content.shown if facts and facts.content else ()
    return next((str(s) for s in shown if s.accelerator == CUDA and s.how == NAMES and s.version), "")


def _label(package: StackPackage) -> str:
    return package.known_accelerator.label if package.known_accelerator else ""


def _cuda_majors(stack: StackFacts) -> dict[str, str]:
    """The CUDA majors of the stack, with a package each: its runtime packages, without these torch."""
    runtimes = {major: p.label for p in reversed(stack.packages) if (major := _runtime_major(p))}
    if runtimes:
        return dict(sorted(runtimes.items(), key=lambda item: int(item[0])))
    torch = stack.package("torch")
    major = _cuda(torch).partition(".")[0] if torch else ""
    return {major: torch.label} if torch and major else {}


def _runtime_major(package: StackPackage) -> str:
    """The major version of CUDA whose runtime libraries the package has; "" for others, or if unknown."""
    match = runtime_match(package.name)
    if match is None:
        return ""
    if match["major"]:
        return match["major"]
    # Since CUDA 13 the names have no suffix; only the runtime's own version is that of CUDA (cuBLAS has its own).
    return package.version.partition(".")[0] if package.name == "nvidia-cuda-runtime" else ""


def _cuda(package: StackPackage) -> str:
    facts = package.known_accelerator
    return facts.version if facts and facts.accelerator == CUDA else ""


@stack_rule(
    "STK122",
    "torch is built for the expected accelerator",
    why="A requirement resolves to the build that its index has for the platform: CUDA 12 or 13, ROCm, or the CPU.",
    example="`--expect cuda==13.0` with a lock that has torch 2.9.1 for CUDA 12.8",
    fix="Install torch from an index, or in a release, that has the expected build.",
)
def expected_torch(stack: StackFacts, expectations: Expectations) -> Iterable[Finding]:
    """The accelerator of --expect, if given. A torch for the CPU where a GPU is expected is STK101's."""
    wanted = expectations.of_torch
    if wanted is None:
        need(Unavailable("no --expect was given"))
        return
    if not stack.packages:
        return
    torch = stack.package("torch")
    if torch is None:
        yield Finding(f"--expect {wanted} applies to torch, but the stack does not contain torch", undecided=True)
        return
    facts = torch.known_accelerator
    if facts is None or (facts.accelerator not in GPU and not facts.lacks_gpu):
        yield Finding(f"not proven that {torch.label} is built for {wanted}", demands(torch), undecided=True)
        return
    if facts.lacks_gpu:
        return
    accepted = facts.accelerator == wanted.accelerator and wanted.accepts_version(facts.version)
    if accepted is not True:
        evidence = (Evidence(torch.label, facts.local_version or facts.label, torch.file_name), *demands(torch))
        fix = Fix("Install torch from an index, or in a release, that has the expected build.")
        message = f"{torch.label} is built for {facts.label}; expected {wanted}"
        yield Finding(message, evidence, fix, torch.place, undecided=accepted is None)


@stack_rule(
    "STK106",
    "torchvision and torchaudio are built for the same accelerator as torch",
    why="They are compiled for one accelerator and one major version of it: with a torch for another, operators are "
    "missing or the import fails. Which releases of torch they support is stated by their requirements. Minor versions "
    "of CUDA are compatible, but torchaudio compares them at import, and raises RuntimeError.",
    example="torch 2.11.0+cu130 with torchvision 0.26.0+cpu",
    fix="Use one index for torch and its companions, in releases made for each other.",
)
def companions(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The same accelerator, and the same major version of it; the same minor version if the import compares it."""
    torch = stack.package("torch")
    base = torch.known_accelerator if torch else None
    for name in _COMPANIONS:
        companion = stack.package(name)
        facts = companion.known_accelerator if companion else None
        if torch is None or companion is None or base is None or facts is None or facts.accelerator not in (*GPU, CPU):
            continue
        other = base.accelerator in GPU or facts.accelerator in GPU
        differs = other and facts.accelerator != base.accelerator and base.accelerator not in facts.others
        refuses = _refuses_minor(companion, facts, base)
        if refuses or differs or (facts.accelerator == base.accelerator and contradict(_major(facts), _major(base))):
            message = f"{companion.label} is built for {facts.label}, but torch {torch.version} for {base.label}"
            message += "; its import compares the two and raises RuntimeError" if refuses else ""
            evidence = (
                Evidence(companion.label, facts.local_version or facts.label, companion.file_name),
                Evidence(torch.label, base.local_version or base.label, torch.file_name),
                *demands(companion),
            )
            fix = Fix("Use one index for both, in releases made for each other.")
            yield Finding(message, evidence, fix, companion.place)


def _refuses_minor(package: StackPackage, facts: AcceleratorFacts, torch: AcceleratorFacts) -> bool:
    """Whether this release itself compares the whole versions of CUDA when it is imported, and they differ."""
    comparing = specifiers_or_none(load("accelerators")["same_cuda_minor"]["versions"].get(package.name, "<0"))
    compares = comparing is not None and comparing.contains(package.version, prereleases=True)
    if not compares or facts.accelerator != CUDA or torch.accelerator != CUDA:
        return False
    own, other = (one.version.split(".")[:2] for one in (facts, torch))
    return len(own) == len(other) == 2 and own[0] == other[0] and own != other


def _major(facts: AcceleratorFacts) -> str:
    return facts.version.partition(".")[0]
