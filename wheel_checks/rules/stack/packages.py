"""Is each package of the stack a suitable one: a build for the GPU, in a wheel, with a file for the target?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.accelerator.signals import CUDA, GPU
from wheel_checks.facts.stack.facts import CONDA, NO_FILE, SDIST, StackPackage
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.facts.wheel.resolution import exact_pin
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.fixes.commands import Options, Step, option, requirement, run
from wheel_checks.fixes.commands import package as command_package
from wheel_checks.formats.sdist.static_metadata import StaticMetadata
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import joined, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.accelerator import (
    gpu_siblings,
    siblings_shown,
    signals_shown,
    unread_siblings,
)
from wheel_checks.rules.shared.commands import look_at_index, other_files
from wheel_checks.rules.stack.demands import demands

package_rule = rules_of("package", Audience.INSTALLER)

_SHOWN = 6


@package_rule(
    "STK101",
    "no package is a CPU build where a GPU is requested",
    why="The same requirements select CUDA builds on x86_64 and CPU builds on aarch64: everything installs, but no GPU "
    "is found at run time. If neither --gpu nor --expect requests a GPU, it is a note; it is not reported if an index, "
    "an extra, a group or a version requests the CPU (`cpu`, `+cpu`).",
    example="`vllm==0.19.0` on aarch64: it pins torch 2.10.0, whose aarch64 wheel on the index is CPU-only",
    fix="Use a release whose pins allow a build for this architecture, or an index that has one.",
)
def cpu_build(package: StackPackage, expectations: Expectations) -> Iterable[Finding]:
    """A torch without an accelerator, or a package whose release has GPU builds for another machine, fails.

    The latter is a warning if only another package is for a GPU: the CPU build of torchcodec works with every torch. If
    no GPU is wanted, a torch for the CPU that nothing requires is a note. STK114 and STK115 judge conda packages.
    """
    if package.distribution == CONDA:
        return
    if not package.gpu_reason:
        yield from _unasked(package, expectations)
        return
    facts = package.known_accelerator if package.name == "torch" else need(package.accelerator)
    if facts is None:
        need(package.accelerator)
        return
    better, unread = gpu_siblings(package.siblings), unread_siblings(package.siblings)
    if facts.accelerator in GPU or not (better or unread or package.name == "torch"):
        return
    shown = (*demands(package), *signals_shown(facts), *siblings_shown(better))
    lacks_gpu = facts.lacks_gpu or (package.name == "torch" and Version(package.version).local == "cpu")
    if not lacks_gpu and (better or package.name == "torch"):
        yield Finding(f"not proven that {package.label} is for a GPU: {facts.unread}", shown, undecided=True)
    elif better or package.name == "torch":
        built = f" ({facts.local_version})" if facts.local_version else ""
        message = f"{package.label} is a CPU build{built} on {package.target.machine}, although {package.gpu_reason}"
        if pin := _pin(package):
            message += f"; {pin}"
        is_wanted = package.name == "torch" or expectations.gpus or expectations.of_torch
        yield Finding(message, shown, _gpu_fix(package), severity=None if is_wanted else Severity.WARNING)
    else:
        message = f"not proven that {package.label} has no GPU build for {unread[0].machine}: {unread[0].file_name}"
        yield Finding(f"{message} was not read completely", shown, undecided=True)


def _unasked(package: StackPackage, expectations: Expectations) -> Iterator[Finding]:
    """A torch for the CPU that no index, extra, group or version asks for by its name."""
    facts = package.known_accelerator
    if package.name != "torch" or facts is None or not facts.lacks_gpu or package.cpu_reason or expectations.of_torch:
        return
    built = f" ({facts.local_version})" if facts.local_version else ""
    message = (
        f"{package.label} is a CPU build{built} on {package.target.machine}, although nothing requests a CPU build"
    )
    if pin := _pin(package):
        message += f"; {pin}"
    yield Finding(message, (*demands(package), *signals_shown(facts)), _gpu_fix(package), severity=Severity.NOTE)


def _pin(package: StackPackage) -> str:
    """Who makes it this version: "vllm 0.19.0 pins torch==2.10.0"."""
    last = package.chain[-1] if package.chain else None
    return f"{last.by} pins {last.text}" if last and last.by and exact_pin(last.requirement) else ""


def _gpu_fix(package: StackPackage) -> Fix:
    """For torch, the advice of the table of its builds; the requirement to change is the first of the chain."""
    machine = package.target.machine
    root = package.chain[0].requirement.name if package.chain else package.name
    if package.name != "torch":
        return Fix(
            f"Use a release of {package.name}, or an index, with a GPU build for {machine}.",
            (look_at_index(package.name, machine),),
        )
    version, table = Version(package.version), load("torch_builds")
    good = [
        Version(row["version"]) for row in table["build"] if row["machine"] == machine and row["accelerator"] == CUDA
    ]
    later = min((known for known in good if known > version), default=None)
    backends = [
        row["backend"]
        for row in table["backend"]
        if row["machine"] == machine and Version(row["first"]) <= Version(version.public) <= Version(row["last"])
    ]
    steps: list[str] = []
    commands: list[Step] = []
    if later is not None:
        steps.append(f"torch {later} is the next release whose {machine} wheel on the index is a CUDA build")
        steps.append(f"use a release of {root} that allows it" if root != "torch" else "use it")
        commands.append(run("wheelproof", "stack", requirement(root), option("--platform", machine)))
    if backends:
        steps.append(f"or keep {version.public}, and use the CUDA build in PyTorch's own index")
        wanted = package.chain[0].text if package.chain else f"torch=={version.public}"
        commands.append(run("uv", "pip", "install", requirement(wanted), f"--torch-backend={backends[-1]}"))
    return Fix("; ".join(steps) + "." if steps else f"No CUDA build of torch for {machine} is known.", tuple(commands))


@package_rule(
    "STK102",
    "every package has a wheel for the target",
    Severity.WARNING,
    why="A source archive is compiled at install: it needs compilers and often the CUDA toolkit, takes up to hours, "
    "and its result, including GPU code, is known only then. wheelproof builds nothing and runs no code of an archive: "
    "it resolves with the requirements that the archive states, and its verdict remains undecided.",
    example="`flash-attn`, of which the index has only a source archive, whose requirements a build computes",
    fix="Build the wheel once, and pass its folder with --find-links; or use a release with a wheel.",
)
def source_only(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """Nothing would be built on the target."""
    if package.unread_archive:
        doubt = f"an installer would try a newer source archive of {package.name}, which could not be read"
        yield Finding(doubt, (Evidence("reason", package.unread_archive),), undecided=True)
    if package.distribution != SDIST:
        return
    archive = package.archive
    if archive is not None and archive.is_pure and package.locked is not None:
        message = f"{package.label} is built from source when it is installed; it is pure Python"
        yield Finding(message, (Evidence("source archive", archive.file_name, "index"),), severity=Severity.NOTE)
        return
    message = _why(package, "only a source archive")
    evidence: list[Evidence] = []
    if archive is not None:
        message = f"{package.label} would be built on the target: {_in_words(archive)}"
        evidence.append(Evidence("source archive", archive.file_name, "index"))
        evidence += _of_archive(archive)
    python = f"{package.target.python[0]}.{package.target.python[1]}"
    fix = Fix(
        f"Build on {package.target.machine} with Python {python} once, and check the stack with the wheels:",
        (_build(package), Options(("wheelproof", "stack"), ("--find-links", "wheels"))),
    )
    yield Finding(message, (*evidence, *demands(package)), fix, undecided=True, cause="would be built there")


def _build(package: StackPackage) -> Step:
    """The command that makes the wheel, and so decides its requirements and content."""
    needs_others = package.archive is not None and bool(package.archive.imported)
    isolation = ["--no-build-isolation"] if needs_others else []
    named = command_package(package.name, package.version)
    return run("pip", "wheel", "--no-deps", *isolation, "--wheel-dir", "wheels", named)


def _in_words(archive: SourceArchive) -> str:
    """The facts of an unbuilt archive, in one line."""
    statements = []
    if isinstance(archive.metadata, StaticMetadata):
        statements.append(f"requires {_requires(archive.metadata)}")
    if archive.computed:
        statements.append(f"the build computes its requirements ({archive.computed})")
    if archive.needs:
        statements.append(f"its build needs {'; '.join(archive.needs)}")
    return "; ".join(statements)


def _requires(metadata: StaticMetadata) -> str:
    active = [text for text in metadata.requirements if "extra ==" not in text]
    return summarised(active, _SHOWN) or "nothing"


def _of_archive(archive: SourceArchive) -> Iterator[Evidence]:
    """The facts of an unbuilt archive."""
    if isinstance(archive.metadata, StaticMetadata):
        yield Evidence("requires", _requires(archive.metadata), archive.metadata_of or archive.metadata.origin)
    if archive.computed:
        yield Evidence("undecided", archive.computed, archive.file_name)
    if archive.needs:
        yield Evidence("a build needs", "; ".join(archive.needs), archive.file_name)


@package_rule(
    "STK103",
    "every package has a file for the target",
    why="Without a file the install fails on the target, although it succeeds on another architecture.",
    example="a package with only x86_64 wheels and no source archive, on aarch64",
    fix="Exclude the package on this architecture with a marker, or use a release or an index that has a file.",
)
def no_file(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """The index lists a wheel or a source archive that fits the target."""
    if package.distribution == NO_FILE and package.locked is None:  # of a locked package STK110 says why
        fix = other_files(package.choice) if package.choice else None
        yield Finding(_why(package, f"no file for {package.target.label}"), demands(package), fix)


@package_rule(
    "STK124",
    "every requested extra exists",
    why="pip and uv warn about an extra that a release does not have, and install the package without what the extra "
    "was to bring: `jax[cuda13]` of a release before that extra is jax for the CPU. An extra that another package "
    "requires is a warning.",
    example="`jax[cuda13]` on Python 3.10, whose newest release, jax 0.6.2, has `cuda12` only",
    fix="Use a release that has the extra, or an extra that the release has.",
)
def missing_extra(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """METADATA of the release declares each extra of the requirements on it."""
    wanted = [demand for demand in package.demands if demand.requirement.extras]
    if not wanted:
        return
    there = need(package.extras if package.extras is not None else Unavailable("its METADATA was not read"))
    for demand in wanted:
        missing = sorted(extra for extra in demand.requirement.extras if canonicalize_name(extra) not in there)
        if missing:
            what = f"{package.label} has no extra {joined(missing)}, which {demand.by or 'you'} "
            message = f"{what}{'requires' if demand.by else 'ask for'}"
            evidence = (Evidence("extras", summarised(sorted(there), _SHOWN) or "none", "METADATA"), *demands(package))
            severity = Severity.WARNING if demand.by else Severity.ERROR
            yield Finding(message, evidence, Fix("Use a release that has the extra."), severity=severity)


def _why(package: StackPackage, otherwise: str) -> str:
    return package.explanation or f"{package.label} has {otherwise}"
