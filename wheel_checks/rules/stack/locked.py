"""Does the lock give the target what it names: a file for each package, with the hash that the index states?"""

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
    why="A lock is installed as it is, without resolving again. The install fails if the lock lists a package's wheels "
    "only for another machine or Python, or the URL of such a wheel without a marker.",
    example="the URL of `torch-2.11.0+cu130-cp312-cp312-manylinux_2_28_x86_64.whl` in a lock that is installed on "
    "aarch64",
    fix="Give the package a source for each machine, with markers; then lock again.",
)
def locked_file(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """Each package that the target gets has a file that fits it, or a source."""
    entry = package.locked
    if entry is None or not entry.misfit:
        return
    evidence = [Evidence("locked", package.label, entry.where)]
    if entry.address:
        evidence.append(Evidence("address", entry.address, entry.where))
    fix = Fix(
        f"Add a file of {package.name} for {package.target.machine} to the lock: change its source, then lock again."
    )
    yield Finding(entry.misfit, tuple(evidence), fix)


@stack_rule(
    "STK111",
    "the lock includes the target",
    why="A lock may be limited to machines, Pythons or environments; for others its installer rejects it.",
    example="a `pixi.lock` only for linux-64, on aarch64",
    fix="Add the platform or the environment to the project, then lock again.",
)
def for_target(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The target is among the environments, platforms and Pythons of the lock."""
    if stack.lock is not None and stack.lock.outside:
        machine = stack.target.machine
        message = f"{stack.lock.name} does not include {stack.target.label}: {stack.lock.outside}"
        yield Finding(message, fix=Fix(f"Add {machine} with this Python to the project, then lock again."))


@package_rule(
    "STK112",
    "the index states the same hash as the lock",
    why="Installers reject a file whose hash differs from the lock: either the file was replaced on the index, or the "
    "lock was made from another index or edited by hand.",
    example="a lock with sha256:1c22..., while the index states sha256:9f3a... for the same file name",
    fix="Find out what changed; then lock again.",
)
def locked_hash(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """The hashes that both state are the same."""
    wrong = package.locked.wrong if package.locked else None
    if package.locked is None or wrong is None:
        return
    evidence = (Evidence("locked", wrong.locked, package.locked.where), Evidence("stated", wrong.stated, wrong.index))
    message = f"{wrong.file_name} has a different hash on the index than in {package.locked.lock}"
    yield Finding(message, evidence, Fix("Find out what changed; then lock again."))


@package_rule(
    "STK113",
    "the file of every locked package was read",
    why="A lock may contain indexes and URLs that are configured nowhere else: these are not contacted unless you "
    "trust them. What the file name states (`+cu130`, `+cpu`) is reported as declared, and proves nothing.",
    example="torch 2.11.0+cu130 from an index that only the lock contains",
    fix="Trust the host with --trust-index, or add the index with --extra-index-url.",
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
    "the lock states which packages the target gets",
    why="Locks in older formats do not state which package is requested, and conda packages are known only by name, "
    "version and build. What is unknown is not proven.",
    example="a `poetry.lock` of poetry 1.x with two releases of torch, and no pyproject.toml that selects one",
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
        told = f"{count} of conda known only by name, version and build; the files are not read"
        yield Finding(told, undecided=True, cause="conda")


@package_rule(
    "STK115",
    "no conda package is a CPU build where a GPU is requested",
    why="conda's solver selects a CPU build if the lock was made without a detected GPU (no `__cuda`): everything "
    "installs, but no GPU is found at run time. The build string shows it.",
    example="`pytorch 2.8.0 cpu_generic_py312_h1`, where a GPU is requested",
    fix="Set `system-requirements` with cuda in pixi.toml, or require the cuda build, then lock again.",
)
def conda_cpu_build(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """A build string that names the CPU belongs to a package that has builds for GPUs, too."""
    entry, facts = package.locked, package.known_accelerator
    if package.distribution != CONDA or entry is None or not package.gpu_reason:
        return
    if facts is not None and facts.accelerator == CPU:
        message = f"{package.label} is the CPU build {entry.build}, although {package.gpu_reason}"
        fix = Fix("Set system-requirements with cuda in pixi.toml, then lock again.")
        # Other packages for the CPU work next to a torch for CUDA: many feedstocks have both builds.
        severity = None if package.name in _TORCH else Severity.WARNING
        yield Finding(message, (Evidence("locked", package.label, entry.where),), fix, severity=severity)
