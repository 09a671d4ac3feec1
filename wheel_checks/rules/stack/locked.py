"""Does the lock give the target what it names: a file for each package, with the hash that the index states?"""

from __future__ import annotations

from collections.abc import Iterable

from wheel_checks.facts.accelerator.signals import CPU
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.stack.facts import CONDA, StackFacts, StackPackage
from wheel_checks.model import Evidence, Finding, Fix, Severity
from wheel_checks.phrases import plural
from wheel_checks.rules.stack.packages import package_rule
from wheel_checks.rules.stack.resolution import stack_rule

_TORCH = ("pytorch", "libtorch")  # what torch is called on conda-forge and on the channel pytorch


@package_rule(
    "STK110",
    "every locked package has a file for the target",
    why="A lock is installed as it is: nothing is resolved again. A package of which the lock names wheels for another "
    "machine or Python alone, or the direct address of such a wheel without a marker, stops the whole install.",
    example="the address of `torch-2.11.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl` in a lock that is installed on "
    "aarch64",
    fix="Give the package a source for each machine, by markers; then lock again.",
)
def locked_file(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """Each package that the target gets has a file that fits it, or a source."""
    entry = package.locked
    if entry is None or not entry.misfit:
        return
    evidence = [Evidence("locked", package.label, entry.where)]
    if entry.address:
        evidence.append(Evidence("address", entry.address, entry.where))
    fix = Fix(f"Have the lock name a file of {package.name} for {package.target.machine}, then lock again.")
    yield Finding(entry.misfit, tuple(evidence), fix)


@stack_rule(
    "STK111",
    "the lock is for the target",
    why="A lock may be limited to machines, Pythons or environments: elsewhere its installer refuses it.",
    example="a `pixi.lock` for linux-64 alone, on aarch64",
    fix="Add the platform or the environment to the project, then lock again.",
)
def for_target(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The target is among the environments, platforms and Pythons of the lock."""
    if stack.lock is not None and stack.lock.outside:
        machine = stack.target.machine
        message = f"{stack.target.label} is outside what {stack.lock.name} covers: {stack.lock.outside}"
        yield Finding(message, fix=Fix(f"Have the project cover {machine} with this Python, then lock again."))


@package_rule(
    "STK112",
    "the index states the hash that the lock has",
    why="Installers refuse a file whose hash differs from the one in the lock: either the file was replaced on the "
    "index, or the lock was made from another index or changed by hand.",
    example="a lock with sha256:1c22..., where the index states sha256:9f3a... for the same file name",
    fix="Find out who changed it; then lock again.",
)
def locked_hash(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """The hashes that both state are the same."""
    wrong = package.locked.wrong if package.locked else None
    if package.locked is None or wrong is None:
        return
    evidence = (Evidence("locked", wrong.locked, package.locked.where), Evidence("stated", wrong.stated, wrong.index))
    message = f"{wrong.file_name} has another hash on the index than in {package.locked.lock}"
    yield Finding(message, evidence, Fix("Find out who changed it. Then lock again."))


@package_rule(
    "STK113",
    "the file of every locked package was read",
    why="A lock may name indexes and addresses that only it names: these are not contacted unless they are trusted. "
    "What the file's name says (`+cu130`, `+cpu`) is reported as declared, and proves nothing.",
    example="torch 2.11.0+cu130 of an index that only the lock names",
    fix="Trust the host with --trust-index, or give the index with --extra-index-url.",
)
def unread(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """Nothing is known by its name alone."""
    entry = package.locked
    if entry is None or not entry.unread:
        return
    facts = package.known_accelerator
    said = f"; its name declares {facts.label}" if facts else ""
    evidence = [Evidence("file", package.file_name or package.label, entry.where)]
    if entry.address:
        evidence.append(Evidence("address", entry.address, entry.where))
    yield Finding(f"{package.label} was not read: {entry.unread}{said}", tuple(evidence), undecided=True)


@stack_rule(
    "STK114",
    "the lock says which packages the target gets",
    why="Locks of older formats do not say which package is asked for, and packages of conda are known by name, "
    "version and build only. What is not known is not proven.",
    example="a `poetry.lock` of poetry 1.x with two releases of torch, and no pyproject.toml that says which",
    fix="Lock again with a current release of the tool.",
)
def decided(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every package is known, and its files can be read."""
    if stack.lock is None:
        return
    for sentence in stack.lock.open:
        yield Finding(f"{stack.lock.name}: {sentence}", undecided=True)
    for sentence in stack.lock.notes:
        yield Finding(f"{stack.lock.name}: {sentence}", severity=Severity.NOTE)
    if stack.lock.conda:
        count = plural(stack.lock.conda, "package")
        told = f"{count} of conda known by name, version and build; the files are not read"
        yield Finding(told, undecided=True, cause="conda")


@package_rule(
    "STK115",
    "no package of conda is a CPU build where a GPU is wanted",
    why="conda's solver takes a CPU build where the lock was made without a GPU in sight (no `__cuda`): everything "
    "installs, and no GPU is found when it runs. The build string says so.",
    example="`pytorch 2.8.0 cpu_generic_py312_h1`, where a GPU is wanted",
    fix="Set `system-requirements` with cuda in pixi.toml, or require the cuda build, then lock again.",
)
def conda_cpu_build(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """A build string that names the CPU belongs to a package that has builds for GPUs, too."""
    entry, facts = package.locked, package.known_accelerator
    if package.distribution != CONDA or entry is None or not package.gpu_reason:
        return
    if facts is not None and facts.accelerator == CPU:
        message = f"{package.label} is the CPU build {entry.build}, though {package.gpu_reason}"
        fix = Fix("Set system-requirements with cuda in pixi.toml, then lock again.")
        # Other packages for the CPU work next to a torch for CUDA: many feedstocks have both builds.
        severity = None if package.name in _TORCH else Severity.WARNING
        yield Finding(message, (Evidence("locked", package.label, entry.where),), fix, severity=severity)
