"""Does an install keep the torch that works? PIN301 judges one requirement, PIN311 to PIN313 a planned install."""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.commands import Command, NoCommand, package, run
from wheel_checks.facts.accelerator.signals import GPU
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.pins.changes import Fate, PackageChange, Survival
from wheel_checks.facts.stack.facts import Conflict
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, Unavailable
from wheel_checks.registry import rule
from wheel_checks.rules.shared.accelerator import signals_shown

TORCH = "torch"


@rule(
    "PIN301",
    "the installed version survives the requirement",
    kind="requirement-of-installed",
    audience=Audience.INSTALLER,
    why="pip and uv keep an installed version exactly when it satisfies the requirement (PEP 440); anything else is "
    "taken from the index, where the same version may be a CPU build.",
    example="`torch>2.7.0` with 2.7.0+cu128 installed: `>` excludes local versions of the version it names",
    fix="Loosen the requirement, or guard the environment with `wheelproof pins guard`.",
)
def survival(facts: Survival, _: Expectations) -> Iterable[Finding]:
    """A requirement that the installed version does not satisfy fails."""
    if facts.kept:
        return
    told = f"{facts.name} {facts.installed} does not survive {facts.requirement}: {'; '.join(facts.reasons)}"
    fix = Fix(
        f"Loosen the requirement, or guard {facts.name} before you install.",
        (_guard(facts.name, str(facts.installed)),),
    )
    note = (Evidence("local version", "an index that lacks it makes the install fail"),) if facts.may_fail else ()
    yield Finding(told, note, fix)


@rule(
    "PIN311",
    "the install keeps the installed torch",
    kind="planned-change",
    audience=Audience.INSTALLER,
    why="A package cannot name an index for its dependencies: whatever requires another torch gets the one of the "
    "default index, and the CUDA build that worked is gone without a word.",
    example="`vllm==0.19.0` on aarch64 with torch 2.9.1+cu128: replaced by 2.10.0, which is CPU only there",
    fix="Guard the environment with `wheelproof pins guard`, or take a release that allows the installed torch.",
)
def torch_kept(change: PackageChange, _: Expectations) -> Iterable[Finding]:
    """A torch that would be replaced or removed fails."""
    if change.name == TORCH and change.fate in (Fate.REPLACED, Fate.REMOVED):
        yield Finding(_message(change), _evidence(change), _fix(change))


@rule(
    "PIN312",
    "the install keeps the packages that belong to the installed torch",
    Severity.WARNING,
    kind="planned-change",
    audience=Audience.INSTALLER,
    why="torchvision, torchaudio and torchcodec are compiled against one torch; torchcodec and torchao do not even say "
    "so in their metadata, so no resolver keeps them in step.",
    example="`torchcodec` replaced by a release for a later torch, while torch itself stays",
    fix="Guard them as well, or install the releases that belong to the installed torch.",
)
def companions_kept(change: PackageChange, _: Expectations) -> Iterable[Finding]:
    """A companion of torch that would be replaced or removed fails."""
    if change.name != TORCH and change.fate in (Fate.REPLACED, Fate.REMOVED):
        yield Finding(_message(change), _evidence(change), _fix(change))


@rule(
    "PIN313",
    "the install can be carried out",
    Severity.WARNING,
    kind="planned-install",
    audience=Audience.INSTALLER,
    why="Requirements that contradict each other, or a guard that does its work, make the installer stop: nothing is "
    "installed and nothing is lost.",
    example="`torch==2.8.0` under the constraint `torch==2.7.0+cu128`",
    fix="Take a release whose requirements allow the installed torch.",
)
def can_be_done(conflict: Conflict | None, _: Expectations) -> Iterable[Finding]:
    """An install that the installer refuses fails."""
    if conflict is not None:
        evidence = tuple(Evidence("demand", demand) for demand in conflict.demands)
        told = "; ".join(conflict.sentences)
        yield Finding(f"the install would fail, and change nothing: {told}", evidence)


def _message(change: PackageChange) -> str:
    told = change.sentence
    if change.chain:
        last = change.chain[-1]
        return f"{told}; demanded by {last.by or 'you'} ({last.text})"
    return f"{told}; no requirement demands it: --upgrade does" if change.upgrade else told


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
    return Fix(fix, (_guard(change.name, change.before),))


def _guard(name: str, version: str) -> Command | NoCommand:
    return run("wheelproof", "pins", "guard", "--installed", package(name, version))
