"""Does an install keep the framework that works? PIN301 judges one requirement, PIN311 to PIN316 a planned install."""

from __future__ import annotations

import re
from collections.abc import Iterable

from wheel_checks.facts.accelerator.signals import GPU
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.pins.changes import Fate, PackageChange, PlannedInstall, Role, Survival
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.fixes.commands import Command, NoCommand, package, run
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, Unavailable
from wheel_checks.registry import rule
from wheel_checks.rules.shared.accelerator import signals_shown

_GPU_BUILD = re.compile(r"\+.*(?:cu|rocm|xpu)\d*", re.IGNORECASE)


@rule(
    "PIN301",
    "the installed version satisfies the requirement",
    kind="requirement-of-installed",
    audience=Audience.INSTALLER,
    why="pip and uv keep an installed version exactly when it satisfies the requirement (PEP 440); otherwise they "
    "install one from the index, where the same version may be a CPU build.",
    example="`torch>2.7.0` with 2.7.0+cu128 installed: `>` excludes local versions of the version it names",
    fix="Loosen the requirement, or guard the environment with `wheelproof pins guard`.",
)
def survival(facts: Survival, _: Expectations) -> Iterable[Finding]:
    """A requirement that the installed version does not satisfy fails."""
    if facts.kept:
        return
    message = f"{facts.name} {facts.installed} does not satisfy {facts.requirement}: {'; '.join(facts.reasons)}"
    fix = Fix(
        f"Loosen the requirement, or guard {facts.name} before you install.",
        (_guard(facts.name),),
    )
    note = (Evidence("local version", "an index that lacks it makes the install fail"),) if facts.may_fail else ()
    yield Finding(message, note, fix)


@rule(
    "PIN311",
    "the install keeps the installed framework",
    kind="planned-change",
    audience=Audience.INSTALLER,
    why="A package cannot specify an index for its dependencies: if it requires another torch, the installer replaces "
    "the working CUDA build by the default index's build, without a warning. Where torch is outside the folder that "
    "the installer writes to (system site-packages, a .pth file), a second copy that shadows it has the same effect.",
    example="`vllm==0.19.0` on aarch64 with torch 2.9.1+cu128: replaced by 2.10.0, which is CPU only there",
    fix="Guard the environment with `wheelproof pins guard`, or use a release that allows the installed torch.",
)
def framework_kept(change: PackageChange, _: Expectations) -> Iterable[Finding]:
    """A torch, jax, tensorflow... that would be replaced, removed, shadowed or overwritten fails."""
    if change.role in (Role.ANCHOR, Role.NAMED) and change.is_lost:
        yield Finding(_message(change), _evidence(change), _fix(change))


@rule(
    "PIN312",
    "the install keeps the installed framework's companion packages",
    Severity.WARNING,
    kind="planned-change",
    audience=Audience.INSTALLER,
    why="torchvision, torchaudio and torchcodec are compiled against one torch; torchcodec and torchao do not "
    "declare this in their metadata, so no resolver keeps them matching. A build for another accelerator does not "
    "work with it.",
    example="`torchvision` 0.22.0+cu128 replaced by 0.22.1, which is CPU only on aarch64, while torch itself is kept",
    fix="Guard them as well, or install the releases that match the installed torch.",
)
def companions_kept(change: PackageChange, _: Expectations) -> Iterable[Finding]:
    """A companion that is lost or replaced fails: an error if it worked on a GPU and its replacement does not."""
    if change.role is not Role.COMPANION or not change.is_lost:
        return
    is_gone = change.fate in (Fate.REMOVED, Fate.OVERWRITTEN)
    facts = change.accelerator
    was_for_gpu = bool(_GPU_BUILD.search(change.before))
    is_for_gpu = isinstance(facts, AcceleratorFacts) and facts.accelerator in GPU
    severity = Severity.ERROR if is_gone or (was_for_gpu and not is_for_gpu) else None
    yield Finding(_message(change), _evidence(change), _fix(change), severity=severity)


@rule(
    "PIN313",
    "the install can succeed",
    Severity.WARNING,
    kind="planned-install",
    audience=Audience.INSTALLER,
    why="Contradictory requirements, or an active guard, make the installer stop: nothing is installed and nothing is "
    "lost.",
    example="`torch==2.8.0` under the constraint `torch==2.7.0+cu128`",
    fix="Use a release whose requirements allow the installed torch.",
)
def can_be_done(facts: PlannedInstall, _: Expectations) -> Iterable[Finding]:
    """An install that the installer refuses fails."""
    conflict = facts.conflict
    if conflict is not None:
        evidence = tuple(Evidence("demand", demand) for demand in conflict.demands)
        reasons = "; ".join(conflict.sentences)
        yield Finding(f"the install would fail and change nothing: {reasons}", evidence)


@rule(
    "PIN314",
    "the framework's companion packages match the framework after the install",
    kind="planned-change",
    audience=Audience.INSTALLER,
    why="torchaudio from 2.11 on declares no torch at all, and torchcodec and JAX's plug-ins do not declare a release: "
    "an installer selects the newest, which does not load with an older framework, or is not used.",
    example="`torchaudio` 2.11.0 with torch 2.7.0+cu128, which it does not require",
    fix="Specify the release that matches the installed framework.",
)
def companions_fit(change: PackageChange, _: Expectations) -> Iterable[Finding]:
    """An incompatible companion fails; if no table has it, it is undecided."""
    if change.role is not Role.COMPANION:
        return
    if change.unfit or (change.broken and change.fate is Fate.BROKEN):
        yield Finding(_message(change), _evidence(change))
    for sentence in change.open:
        yield Finding(f"{sentence}; its documentation or an import of it would decide this", undecided=True)


@rule(
    "PIN315",
    "the install keeps the libraries that the framework requires",
    kind="planned-change",
    audience=Audience.INSTALLER,
    why="Installers replace another package's requirements without checking the installed framework: two frameworks "
    "that share nvidia-cudnn-cu12, nvidia-nccl-cu12 or triton get the version that was installed last. The framework "
    "remains installed, and fails when it loads the library, or computes different results.",
    example="`jax[cuda12]` replaces the nvidia-cudnn-cu12 that torch requires in an exact version",
    fix="Install the other framework into a separate environment, or guard the libraries together with torch.",
)
def framework_whole(change: PackageChange, _: Expectations) -> Iterable[Finding]:
    """A framework that stays without one of its requirements fails; undecided if its requirements are unknown."""
    if change.role not in (Role.ANCHOR, Role.NAMED):
        return
    if change.fate is Fate.BROKEN:
        yield Finding(_message(change), _evidence(change), _fix(change))
    for sentence in change.open:
        yield Finding(f"{sentence}; the environment itself would decide this (--python)", undecided=True)


@rule(
    "PIN316",
    "the installer's changes are known",
    kind="planned-install",
    audience=Audience.INSTALLER,
    why="A source archive may compute its requirements when it is built, and a build runs its code. Until then it is "
    "unknown whether it requires another torch. A setting, an option or a variable whose effect is unknown may do "
    "anything.",
    example="a package without wheels whose PKG-INFO says `Dynamic: Requires-Dist`",
    fix="Let the installer build it with `--build` if you trust it, or use a release that has a wheel; predict without "
    "the setting that is named.",
)
def plan_known(facts: PlannedInstall, _: Expectations) -> Iterable[Finding]:
    """Unknown parts of the plan are undecided."""
    for part in (*facts.open, *facts.not_understood):
        yield Finding(str(part), undecided=True)


def _message(change: PackageChange) -> str:
    sentence = change.sentence
    if change.chain:
        last = change.chain[-1]
        return f"{sentence}; required by {last.by or 'you'} ({last.text})"
    if change.fate is Fate.SHADOWED:
        return f"{sentence}; {change.installer} does not see the installed one, or must not change it"
    return f"{sentence}; no requirement causes it, --upgrade does" if change.upgrade else sentence


def _evidence(change: PackageChange) -> tuple[Evidence, ...]:
    facts = change.accelerator
    found: tuple[Evidence, ...] = ()
    if change.chain:
        found += (Evidence("chain", "; ".join(map(str, change.chain)), "METADATA"),)
    if change.file_name:
        found += (Evidence("wheel", change.file_name),)
    if facts is None or isinstance(facts, Unavailable):
        return found
    return found + signals_shown(facts)


def _fix(change: PackageChange) -> Fix:
    facts = change.accelerator
    better = isinstance(facts, Unavailable) or facts is None or facts.accelerator in GPU
    again = "" if better else " The wheel that would take its place has no GPU code."
    fix = f"Guard {change.name} {change.before} before you install.{again}"
    return Fix(fix, (_guard(change.name),))


def _guard(name: str) -> Command | NoCommand:
    return run("wheelproof", "pins", "guard", "--install", "--package", package(name))
