"""Is it the accelerator build that was meant? The rules that this project exists for."""

from collections.abc import Iterable

from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.commands import run
from wheel_checks.data import load
from wheel_checks.facts.accelerator.signals import CUDA, GPU
from wheel_checks.facts.accelerator.verdict import LABELS
from wheel_checks.facts.expectations import AcceleratorExpectation, Expectations
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.model import Finding, Fix, Severity, Unavailable, need
from wheel_checks.registry import rule
from wheel_checks.rules.shared.accelerator import gpu_siblings, siblings_shown, signals_shown, unmet, unread_siblings
from wheel_checks.rules.shared.commands import look_at_index

_ANY = SpecifierSet()


@rule(
    "WHL201",
    "the wheel is built for the expected accelerator",
    why="A CPU wheel installs, imports and computes without a warning; only `torch.cuda.is_available()` returns False. "
    "Up to 2.10.0, the index's aarch64 wheels of torch were CPU builds.",
    example="`wheelproof verify torch==2.10.0 --platform aarch64 --expect cuda`: the wheel is 2.10.0+cpu",
    fix="Use a release or an index with the CUDA build for this machine.",
)
def expected(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """What the wheel shows is what `--expect` demands; `cpu` is met by a wheel without an accelerator."""
    demand = expectations.accelerator
    if demand is None:
        need(Unavailable("no accelerator was requested", "--expect cuda, cuda==13.0, cpu, ..."))
        return
    yield from unmet(need(wheel.accelerator), demand, _fix(wheel, demand))


def _fix(wheel: WheelFacts, demand: AcceleratorExpectation) -> Fix:
    """For torch, from the table of its builds; for others, how to look for a better file."""
    machine = wheel.target.machine if wheel.target else "x86_64"
    if isinstance(wheel.name, Unavailable):
        return Fix(f"Use a release or an index with the package for {demand} on {machine}.")
    name = canonicalize_name(wheel.name.distribution)
    if name == "torch" and demand.accelerator == CUDA:
        return _torch_fix(wheel.name.parsed_version, machine, demand)
    return Fix(
        f"Use a release or an index with {name} for {demand} on {machine}; this lists what the index has:",
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
    source = f"PyTorch's own index (uv's --torch-backend) has CUDA builds of {version.public} for {machine}"
    if not good:
        return Fix(f"{source}." if commands else f"No torch for {demand} on {machine} is known.", tuple(commands))
    first = next((candidate for candidate in good if candidate > version), good[-1])
    if all(known in good for known in builds if known >= first):
        summary = f"{first} or later: its {machine} wheel on the index is a CUDA build"
    else:  # a later release that installers would take does not fit the demand
        summary = f"{first}: its {machine} wheel on the index is CUDA {builds[first]['cuda']}"
    if commands:
        summary += f"; or keep {version.public}: {source}"
    return Fix(f"Use torch {summary}.", (run("pip", "install", f"torch=={first}"), *commands))


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
    "native code, version.py and requirements of the wheel agree on the accelerator",
    why="A CUDA library with a `version.py` that says CPU, or a CUDA build whose CUDA requirements are disabled on "
    "this platform, is a mixture of two builds: it installs and fails when it runs.",
    example="libtorch_cuda.so in a wheel whose version.py says `cuda = None`",
    fix="Rebuild the wheel from a clean tree; check the markers of its CUDA requirements.",
)
def agree(wheel: WheelFacts, _: Expectations) -> Iterable[Finding]:
    """No signal that says something contradicts another."""
    facts = need(wheel.accelerator)
    for conflict in facts.conflicts:
        fix = Fix("Rebuild the wheel from a clean tree, and check the markers of its requirements.")
        yield Finding(f"the wheel's accelerator is contradictory: {conflict}", signals_shown(facts), fix)


@rule(
    "WHL203",
    "a wheel without an accelerator has no sibling with one for another machine",
    Severity.WARNING,
    kind="release",
    why="With CUDA on x86_64 and a CPU build on aarch64, the same command and version silently install a CPU build on "
    "one of them.",
    example="torch 2.10.0: CUDA 12.8 on x86_64, CPU on aarch64",
    fix="Users: pin a release that has the build for this machine. Maintainers: publish it, or fail the install.",
)
def siblings(wheel: WheelFacts, expectations: Expectations) -> Iterable[Finding]:
    """Compare with the wheels of the same release for other machines that the same Python installs."""
    facts = need(wheel.accelerator)
    wanted = expectations.accelerator
    if facts.accelerator in GPU or (wanted and wanted.accelerator not in GPU):
        return
    if not wheel.siblings and wheel.listing is None:
        need(Unavailable("no index lists the other files of the release"))
    better = gpu_siblings(wheel.siblings)
    if better and facts.lacks_gpu:
        machine = wheel.target.machine if wheel.target else "this machine"
        message = (
            f"this wheel has no accelerator, but the same release is built for {LABELS[better[0].accelerator]} on "
            f"{better[0].machine}: users of {machine} silently get no GPU"
        )
        demand = wanted or AcceleratorExpectation(better[0].accelerator, _ANY)
        yield Finding(message, siblings_shown(better), _fix(wheel, demand))
    elif better:
        message = f"not proven that this wheel is for a GPU as on {better[0].machine}: {facts.unread}"
        yield Finding(message, siblings_shown(better), undecided=True)
    elif unread := unread_siblings(wheel.siblings):
        reason = f"not proven that {unread[0].file_name} has no accelerator: not all of its libraries were read"
        if wanted or expectations.gpus:
            yield Finding(reason, undecided=True)
        else:
            need(Unavailable(reason, "--expect cuda or --gpu asks for more"))
