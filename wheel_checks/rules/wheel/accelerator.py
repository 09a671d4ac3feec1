"""Is it the accelerator build that was meant? The rules that this project exists for."""

from __future__ import annotations

from collections.abc import Iterable

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.commands import run
from wheel_checks.data import load
from wheel_checks.facts.accelerator.signals import CPU, CUDA, GPU
from wheel_checks.facts.accelerator.verdict import LABELS
from wheel_checks.facts.expectations import AcceleratorExpectation, Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.registry import rule
from wheel_checks.rules.shared.accelerator import signals_shown
from wheel_checks.rules.shared.commands import look_at_index

_ANY = SpecifierSet()


@rule(
    "WHL201",
    "the wheel is built for the expected accelerator",
    why="A CPU wheel installs, imports and computes without a word; only `torch.cuda.is_available()` says False. On "
    "aarch64 the index's torch was such a wheel up to 2.10.0.",
    example="`wheelproof verify torch==2.10.0 --platform aarch64 --expect cuda`: the wheel is 2.10.0+cpu",
    fix="Take a release or an index that has the CUDA build for this machine.",
)
def expected(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """The verdict of the three signals is what `--expect` demands."""
    demand = expectations.accelerator
    if demand is None:
        need(Unavailable("nothing was demanded", "--expect cuda, cuda==13.0, cpu, ..."))
        return
    facts = need(wheel.accelerator)
    if demand.accelerator not in (facts.accelerator, *facts.others):
        message = f"the wheel is {facts.described}, expected {demand}"
        yield Finding(message, signals_shown(facts), _fix(wheel, demand))
    elif demand.accelerator == facts.accelerator:
        accepted = demand.accepts_version(facts.version)
        if accepted is None:
            told = f"tells only version {facts.version}" if facts.version else "does not tell its version"
            yield Finding(f"expected {demand}, but the wheel {told}", signals_shown(facts), severity=Severity.WARNING)
        elif not accepted:
            yield Finding(
                f"the wheel is {facts.described}, expected {demand}", signals_shown(facts), _fix(wheel, demand)
            )


def _fix(wheel: WheelFacts, demand: AcceleratorExpectation) -> Fix:
    """For torch, from the table of its builds; for others, how to look for a better file."""
    machine = wheel.target.machine if wheel.target else "x86_64"
    if isinstance(wheel.name, Unavailable):
        return Fix(f"Take a release or an index that has the package for {demand} on {machine}.")
    name = canonicalize_name(wheel.name.distribution)
    if name == "torch" and demand.accelerator == CUDA:
        return _torch_fix(wheel.name.parsed_version, machine, demand)
    return Fix(
        f"Take a release or an index that has {name} for {demand} on {machine}; this lists what the index has:",
        (look_at_index(name, machine),),
    )


def _torch_fix(version: Version, machine: str, demand: AcceleratorExpectation) -> Fix:
    table = load("torch_builds")
    builds = {Version(row["version"]): row for row in table["build"] if row["machine"] == machine}
    good = sorted(
        known for known, row in builds.items() if row["accelerator"] == CUDA and demand.accepts_version(row["cuda"])
    )
    commands = [run("uv", "pip", "install", f"torch=={version.public}", f"--torch-backend={backend}")
                for backend in _backends(table, Version(version.public), machine, demand)]  # fmt: skip
    source = f"PyTorch's own index (through uv's --torch-backend) has CUDA builds of {version.public} for {machine}"
    if not good:
        return Fix(f"{source}." if commands else f"No torch for {demand} on {machine} is known.", tuple(commands))
    first = next((candidate for candidate in good if candidate > version), good[-1])
    if all(known in good for known in builds if known >= first):
        bound, summary = f">={_short(first)}", f"{first} or later: its {machine} wheel on the index is a CUDA build"
    else:  # a later release that installers would take does not fit the demand
        bound, summary = f"=={first}", f"{first}: its {machine} wheel on the index is CUDA {builds[first]['cuda']}"
    if commands:
        summary += f"; or stay on {version.public}: {source}"
    return Fix(f"Take torch {summary}.", (run("pip", "install", f"torch{bound}"), *commands))


def _short(version: Version) -> str:
    """As people write it: 2.11 of 2.11.0."""
    return str(version).removesuffix(".0")


def _backends(
    table: dict[str, list[dict[str, str]]], version: Version, machine: str, demand: AcceleratorExpectation
) -> list[str]:
    """The `--torch-backend` that has this version for this machine and fits the demand: one, or none."""
    fitting = [
        row["backend"]
        for row in table["backend"]
        if row["machine"] == machine
        and Version(row["first"]) <= version <= Version(row["last"])
        and demand.accepts_version(row["cuda"])
    ]
    return fitting[-1:]


@rule(
    "WHL202",
    "members, version.py and requirements agree on the accelerator",
    why="A CUDA library beside a `version.py` that says CPU, or a CUDA build whose CUDA requirements are off on this "
    "platform, is a wheel whose parts were mixed: it installs and fails when it runs.",
    example="libtorch_cuda.so in a wheel whose version.py says `cuda = None`",
    fix="Build the wheel again from a clean tree; check the markers of its CUDA requirements.",
)
def agree(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No signal that says something contradicts another."""
    facts = need(wheel.accelerator)
    for conflict in facts.conflicts:
        fix = Fix("Build the wheel again from a clean tree, and check the markers of its requirements.")
        yield Finding(f"the signals disagree: {conflict}", signals_shown(facts), fix)


@rule(
    "WHL203",
    "a CPU wheel has no sibling with an accelerator for another machine",
    Severity.WARNING,
    kind="release",
    why="One release with CUDA on x86_64 and CPU on aarch64 gives the users of one machine a silent CPU install: the "
    "same command, the same version number, no GPU.",
    example="torch 2.10.0: CUDA 12.8 on x86_64, CPU on aarch64",
    fix="Users: pin a release that has the build for this machine. Maintainers: publish it, or fail the install.",
)
def siblings(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """Compare with the wheels of the same release, Python and ABI for other machines."""
    facts = need(wheel.accelerator)
    if facts.accelerator != CPU or (expectations.accelerator and expectations.accelerator.accelerator == CPU):
        return
    if not wheel.siblings and wheel.listing is None:
        need(Unavailable("no index tells what else the release offers"))
    better = [sibling for sibling in wheel.siblings if sibling.accelerator in GPU]
    if better:
        evidence = tuple(
            Evidence(
                f"{sibling.machine} ({sibling.certainty})",
                f"{sibling.file_name}: {LABELS[sibling.accelerator]} {sibling.accelerator_version}".rstrip(),
                sibling.source,
            )
            for sibling in better
        )
        machine = wheel.target.machine if wheel.target else "this machine"
        message = (
            f"this wheel is CPU only, while the same release is built for {LABELS[better[0].accelerator]} "
            f"on {better[0].machine}: users of {machine} silently get no GPU"
        )
        demand = expectations.accelerator or AcceleratorExpectation(better[0].accelerator, _ANY)
        yield Finding(message, evidence, _fix(wheel, demand))
