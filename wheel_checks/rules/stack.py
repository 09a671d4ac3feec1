"""Will a set of requirements work on the target? STK1xx judge its packages and how they fit, STK2xx their GPU code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from packaging.version import Version

from wheel_checks.commands import Options, Step, option, requirement, run
from wheel_checks.commands import package as command_package
from wheel_checks.data import load
from wheel_checks.facts.accelerator.shown import NAMES, Shown
from wheel_checks.facts.accelerator.signals import CPU, CUDA, GPU
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.stack.facts import NO_FILE, SDIST, StackFacts, StackPackage, unfulfilled
from wheel_checks.facts.wheel.resolution import exact_pin
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.sdist.static_metadata import StaticMetadata
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, need
from wheel_checks.phrases import joined, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.accelerator import (
    contradict,
    gpu_siblings,
    siblings_shown,
    signals_shown,
    unread_siblings,
)
from wheel_checks.rules.shared.commands import look_at_index, other_files

package_rule = rules_of("package", Audience.INSTALLER)
stack_rule = rules_of("stack", Audience.INSTALLER)

_COMPANIONS = ("torchvision", "torchaudio")  # built against the libraries of one torch, and for its accelerator
_RUNTIME = re.compile(
    r"nvidia-(?:cuda-runtime|cuda-nvrtc|cuda-cupti|cublas|cudnn|cufft|curand|cusolver|cusparse|nccl|nvjitlink)"
    r"(?:-cu(?P<major>\d+))?"
)
_SHOWN = 6


def _demands(package: StackPackage) -> tuple[Evidence, ...]:
    """The chain from what was asked for to this package, and who else demands it."""
    chain = "; ".join(map(str, package.chain))
    rest = [str(demand) for demand in package.demands if demand not in package.chain]
    found = (Evidence("demanded by", chain, "METADATA"),) if chain else ()
    return found + ((Evidence("also", summarised(rest, _SHOWN, separator="; "), "METADATA"),) if rest else ())


@package_rule(
    "STK101",
    "no package is a CPU build where a GPU is wanted",
    why="The same requirements give CUDA builds on x86_64 and CPU builds on aarch64: everything installs, and no GPU "
    "is found when it runs.",
    example="`vllm==0.19.0` on aarch64: it pins torch 2.10.0, whose aarch64 wheel on the index is CPU only",
    fix="Take a release whose pins lead to a build for this architecture, or an index that has one.",
)
def cpu_build(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """A torch without an accelerator, or a package whose release has GPU builds for another machine, fails."""
    if not package.gpu_reason:
        return
    facts = package.known_accelerator if package.name == "torch" else need(package.accelerator)
    if facts is None:
        need(package.accelerator)
        return
    better, unread = gpu_siblings(package.siblings), unread_siblings(package.siblings)
    if facts.accelerator in GPU or not (better or unread or package.name == "torch"):
        return
    shown = (*_demands(package), *signals_shown(facts), *siblings_shown(better))
    if not facts.lacks_gpu and (better or package.name == "torch"):
        yield Finding(f"not proven that {package.label} is for a GPU: {facts.unread}", shown, undecided=True)
    elif facts.lacks_gpu and (better or package.name == "torch"):
        built = f" ({facts.local_version})" if facts.local_version else ""
        message = f"{package.label} is a CPU build{built} on {package.target.machine}, though {package.gpu_reason}"
        if pin := _pin(package):
            message += f"; {pin}"
        yield Finding(message, shown, _gpu_fix(package))
    else:
        message = f"not proven that {package.label} has no GPU build for {unread[0].machine}: {unread[0].file_name}"
        yield Finding(f"{message} was not read completely", shown, undecided=True)


def _pin(package: StackPackage) -> str:
    """Who makes it this version: "vllm 0.19.0 pins torch==2.10.0"."""
    last = package.chain[-1] if package.chain else None
    return f"{last.by} pins {last.text}" if last and last.by and exact_pin(last.requirement) else ""


def _gpu_fix(package: StackPackage) -> Fix:
    """For torch, what the table of its builds knows; the requirement to change is the first of the chain."""
    machine = package.target.machine
    root = package.chain[0].requirement.name if package.chain else package.name
    if package.name != "torch":
        return Fix(
            f"Take a release of {package.name} or an index that has a GPU build for {machine}.",
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
    told: list[str] = []
    commands: list[Step] = []
    if later is not None:
        told.append(f"torch {later} is the next release whose {machine} wheel on the index is a CUDA build")
        told.append(f"take a release of {root} that allows it" if root != "torch" else "take it")
        commands.append(run("wheelproof", "stack", requirement(root), option("--platform", machine)))
    if backends:
        told.append(f"or stay, with the CUDA build of {version.public} that PyTorch's own index has")
        asked = package.chain[0].text if package.chain else f"torch=={version.public}"
        commands.append(run("uv", "pip", "install", requirement(asked), f"--torch-backend={backends[-1]}"))
    return Fix("; ".join(told) + "." if told else f"No CUDA build of torch for {machine} is known.", tuple(commands))


@package_rule(
    "STK102",
    "every package has a wheel for the target",
    Severity.WARNING,
    why="A source archive is compiled at install: it needs compilers and often the CUDA toolkit, takes up to hours, "
    "and what comes out, the GPU code too, is known only then. wheelproof builds nothing and executes no code of an "
    "archive: it resolves with what the archive says of its requirements, and its verdict stays undecided.",
    example="`flash-attn`, of which the index has a source archive only, and whose requirements a build computes",
    fix="Build the wheel once, and give its folder with --find-links; or take a release that has one.",
)
def source_only(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """Nothing would be built on the target."""
    if package.unread_archive:
        told = f"an installer would try a newer source archive of {package.name}, which could not be read"
        yield Finding(told, (Evidence("reason", package.unread_archive),), undecided=True)
    if package.distribution != SDIST:
        return
    archive = package.archive
    message = _why(package, "only a source archive")
    evidence: list[Evidence] = []
    if archive is not None:
        message = f"{package.label} would be built there: {_in_words(archive)}"
        evidence.append(Evidence("source archive", archive.file_name, "index"))
        evidence += _of_archive(archive)
    python = f"{package.target.python[0]}.{package.target.python[1]}"
    fix = Fix(
        f"Build on {package.target.machine} with Python {python} once, and judge the stack with the wheels:",
        (_build(package), Options(("wheelproof", "stack"), ("--find-links", "wheels"))),
    )
    yield Finding(message, (*evidence, *_demands(package)), fix, undecided=True, cause="would be built there")


def _build(package: StackPackage) -> Step:
    """The command that makes the wheel, and so decides what the release requires and holds."""
    needs_others = package.archive is not None and bool(package.archive.imported)
    isolation = ["--no-build-isolation"] if needs_others else []
    named = command_package(package.name, package.version)
    return run("pip", "wheel", "--no-deps", *isolation, "--wheel-dir", "wheels", named)


def _in_words(archive: SourceArchive) -> str:
    """What an archive says without being built, in one line."""
    said = []
    if isinstance(archive.metadata, StaticMetadata):
        said.append(f"requires {_requires(archive.metadata)}")
    if archive.computed:
        said.append(f"the build computes its requirements ({archive.computed})")
    if archive.needs:
        said.append(f"its build needs {'; '.join(archive.needs)}")
    return "; ".join(said)


def _requires(metadata: StaticMetadata) -> str:
    active = [text for text in metadata.requirements if "extra ==" not in text]
    return summarised(active, _SHOWN) or "nothing"


def _of_archive(archive: SourceArchive) -> Iterator[Evidence]:
    """What an archive says without being built."""
    if isinstance(archive.metadata, StaticMetadata):
        yield Evidence("requires", _requires(archive.metadata), archive.metadata_of or archive.metadata.origin)
    if archive.computed:
        yield Evidence("undecided", archive.computed, archive.file_name)
    if archive.needs:
        yield Evidence("a build needs", "; ".join(archive.needs), archive.file_name)


@package_rule(
    "STK103",
    "every package has a file for the target",
    why="The install fails there, although it succeeds on another architecture.",
    example="a package with wheels for x86_64 alone and no source archive, on aarch64",
    fix="Leave the package out on this architecture by a marker, or take a release or an index that has a file.",
)
def no_file(package: StackPackage, _: Expectations) -> Iterable[Finding]:
    """The index lists a wheel or a source archive that fits the target."""
    if package.distribution == NO_FILE:
        fix = other_files(package.choice) if package.choice else None
        yield Finding(_why(package, f"no file for {package.target.label}"), _demands(package), fix)


def _why(package: StackPackage, otherwise: str) -> str:
    return package.explanation or f"{package.label} has {otherwise}"


@stack_rule(
    "STK104",
    "what is built for CUDA finds its major version in the stack",
    why="A library for CUDA 12 does not load where the stack brings CUDA 13 alone, and an extension beside a torch for "
    "another major version works with two runtimes and two sets of handles in one process. Runtimes of two major "
    "versions may be installed together, each for its own packages; but cuDNN, NCCL and others for both have the same "
    "files.",
    example="torch built for CUDA 13.0 with an extension that needs libcudart.so.12",
    fix="Take builds for one major version of CUDA, from one index.",
)
def one_cuda_major(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Packages on torch agree with it, others find what they need, and no two runtime packages have the same files."""
    fix = Fix("Take builds for one major version of CUDA, and look who demands the other one.")
    for twins in _twins(stack):
        names = joined([package.label for package in twins])
        evidence = tuple(item for package in twins for item in _demands(package)[:1])
        message = f"{names} install files of the same paths: one overwrites the other"
        yield Finding(message, evidence, fix)
    there = _cuda_majors(stack)
    torch = stack.package("torch")
    for package in stack.packages:
        needs = _needs(package)
        needed, built = {need.version for need in needs}, _majors_beside_torch(package, stack)
        if package.name in _COMPANIONS or not (there and (needed or built)):
            continue
        what = (
            f"needs {needs[0].what}, of CUDA {joined(sorted(needed, key=int))}"
            if needs
            else f"is built for {_label(package)}"
        )
        evidence = tuple(Evidence("needed", str(item), package.file_name) for item in needs[:_SHOWN])
        evidence += tuple(Evidence(f"CUDA {major}", who, "stack") for major, who in there.items())
        evidence += _demands(package)
        if not needs and (named := _named(package)):
            what += f" ({named})"
        of_torch = _cuda(torch).partition(".")[0] if torch else ""
        differs = bool(built and of_torch) and of_torch not in (needed or built)
        if differs and (not needed or needed.isdisjoint(there)):
            message = f"{package.label} {what}; the stack is for CUDA {joined(list(there))}"
            yield Finding(message, evidence, fix)
        elif differs:
            message = f"not proven that {package.label}, which {what}, works with torch for CUDA {of_torch}"
            yield Finding(message, evidence, fix, undecided=True)
        elif needed and needed.isdisjoint(there):
            message = f"{package.label} {what}, which no package of the stack brings: only the system can"
            yield Finding(message, evidence, fix, undecided=True)


def _twins(stack: StackFacts) -> Iterator[list[StackPackage]]:
    """The packages that are one library for two major versions of CUDA, and have the same paths."""
    found: dict[str, list[StackPackage]] = {}
    pattern = re.compile(load("accelerators")["same_paths"]["pattern"])
    for package in stack.packages:
        if match := pattern.fullmatch(package.name):
            found.setdefault(match[1], []).append(package)
    return (packages for packages in found.values() if len(packages) > 1)


def _needs(package: StackPackage) -> Sequence[Shown]:
    """The libraries of CUDA that the package needs and does not carry; of several majors any one will do."""
    facts = package.known_accelerator
    return facts.content.needs_from_outside(CUDA) if facts and facts.content else ()


def _majors_beside_torch(package: StackPackage, stack: StackFacts) -> set[str]:
    """The majors of CUDA that a package which requires torch is built for; none that only its requirements name."""
    torch, facts = stack.package("torch"), package.known_accelerator
    requires_torch = torch is not None and any(d.by == package.label for d in torch.demands)
    if not requires_torch or facts is None or facts.accelerator != CUDA or CUDA in facts.declared:
        return set()
    return set(facts.majors) or {facts.version.partition(".")[0]} - {""}


def _named(package: StackPackage) -> str:
    """A library of CUDA that the package names, where what it needs is not known; "" for none."""
    facts = package.known_accelerator
    shown = facts.content.shown if facts and facts.content else ()
    return next((str(s) for s in shown if s.accelerator == CUDA and s.how == NAMES and s.version), "")


def _label(package: StackPackage) -> str:
    return package.known_accelerator.label if package.known_accelerator else ""


def _cuda_majors(stack: StackFacts) -> dict[str, str]:
    """The majors of CUDA that the stack brings, with a package each: its runtime packages, without these torch."""
    runtimes = {major: p.label for p in reversed(stack.packages) if (major := _runtime_major(p))}
    if runtimes:
        return dict(sorted(runtimes.items(), key=lambda item: int(item[0])))
    torch = stack.package("torch")
    major = _cuda(torch).partition(".")[0] if torch else ""
    return {major: torch.label} if torch and major else {}


def _runtime_major(package: StackPackage) -> str:
    """The major version of CUDA whose runtime libraries the package holds; "" for any other, or when it is not told."""
    match = _RUNTIME.fullmatch(package.name)
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
    "STK105",
    "the requirements can be fulfilled together",
    why="Two packages that pin different releases of torch cannot be installed into one environment, and on one "
    "architecture alone this may come from a wheel that only the other has.",
    example="`vllm==0.19.0`, which pins torch 2.10.0, together with `torch==2.11.0`",
    fix="Change one of the requirements that the finding names.",
)
def solvable(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The resolver found versions, and these fulfil every METADATA."""
    if stack.unfinished:
        yield Finding(f"newer releases than these may be installed: {stack.unfinished}", undecided=True)
    for conflict in stack.conflicts:
        evidence = tuple(Evidence("demand", demand, "METADATA") for demand in conflict.demands)
        evidence += tuple(Evidence("hint", hint, "uv") for hint in conflict.hints)
        fix = Fix("Change one of these requirements, or leave its version open.")
        if conflict.computed:
            named = joined([archive.label for archive in conflict.computed])
            told = f"perhaps no versions fulfil all requirements: a build computes those of {named}"
            yield Finding(f"{told}; {'; '.join(conflict.sentences)}", evidence, fix, undecided=True)
            continue
        yield Finding(f"no versions fulfil all requirements: {'; '.join(conflict.sentences)}", evidence, fix)
    for package in stack.packages:
        for demand in unfulfilled(package):
            fix = Fix(f"Change the requirement, or what overrides it so that {package.version} is taken.")
            yield Finding(f"{demand}, and the stack has {package.label}", _demands(package), fix)


@stack_rule(
    "STK107",
    "the METADATA that the requirements are resolved by has the hash that its index states",
    why="Whoever can replace the METADATA that an index serves chooses what a resolver takes. uv and pip refuse "
    "one with another hash than the index states (PEP 714), so that nothing can be installed.",
    example="an index that states sha256=9f3a... and serves METADATA with sha256=1c22...",
    fix="Find out who changed it; have the index extract the METADATA again.",
)
def served_metadata(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The resolver did not refuse any."""
    for wrong in stack.wrong_metadata:
        evidence = (Evidence("stated", wrong.stated, "index"), Evidence("served", wrong.found, wrong.file_name))
        message = f"uv refuses the METADATA that the index serves of {wrong.file_name}: it is not the stated one"
        yield Finding(message, evidence, Fix("Find out who changed it. Have the index extract the METADATA again."))


@stack_rule(
    "STK106",
    "torchvision and torchaudio are built for the accelerator of the torch of the stack",
    why="They are compiled for one accelerator and one major version of it: next to a torch for another, operators are "
    "missing or the import fails. Which releases of torch they run with is what their own requirements say; minor "
    "versions of CUDA are compatible.",
    example="torch 2.11.0+cu130 with torchvision 0.26.0+cpu",
    fix="Take torch and its companions from one index, in releases made for each other.",
)
def companions(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """The same accelerator, and the same major version of it: minor versions of CUDA are compatible."""
    torch = stack.package("torch")
    base = torch.known_accelerator if torch else None
    for name in _COMPANIONS:
        companion = stack.package(name)
        facts = companion.known_accelerator if companion else None
        if torch is None or companion is None or base is None or facts is None or facts.accelerator not in (*GPU, CPU):
            continue
        other = base.accelerator in GPU or facts.accelerator in GPU
        differs = other and facts.accelerator != base.accelerator and base.accelerator not in facts.others
        if differs or (facts.accelerator == base.accelerator and contradict(_major(facts), _major(base))):
            message = f"{companion.label} is built for {facts.label}, torch {torch.version} for {base.label}"
            evidence = (
                Evidence(companion.label, facts.local_version or facts.label, companion.file_name),
                Evidence(torch.label, base.local_version or base.label, torch.file_name),
                *_demands(companion),
            )
            yield Finding(message, evidence, Fix("Take both from one index, in releases made for each other."))


def _major(facts: AcceleratorFacts) -> str:
    return facts.version.partition(".")[0]


@stack_rule(
    "STK108",
    "what was asked for is taken in its newest release",
    Severity.NOTE,
    why="A resolver silently takes an older release where the newest one requires what cannot be had. Who expects the "
    "newest one then looks for its features, or its GPU code, in vain.",
    example="`vllm`, whose newest release requires a certifi that does not exist: uv takes the release before it",
    fix="Ask for the newest release by its version, and change what prevents it; or ask for the one that is taken.",
)
def newest_release(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """No newer release that the requirement allows has a file for the target."""
    for refused in stack.refused:
        fix = Fix(
            "See what prevents it:",
            (
                run(
                    "wheelproof",
                    "stack",
                    command_package(refused.name, refused.version),
                    option("--platform", stack.target.machine),
                ),
            ),
        )
        yield Finding(str(refused), fix=fix, cause=refused.name)


@stack_rule(
    "STK109",
    "pip and uv take the same pre-releases",
    Severity.NOTE,
    why="Where every final release of a package is yanked, uv takes a pre-release, and pip takes none without --pre: "
    "the same requirements install with one of them and fail with the other.",
    example="`flash-attn-4`, whose only final release is yanked: uv takes 4.0.0b36, pip nothing",
    fix="Name the pre-release with its version: both take it then.",
)
def same_pre_releases(stack: StackFacts, _: Expectations) -> Iterable[Finding]:
    """Every pre-release of the stack is what pip takes, too."""
    for release in stack.pre_releases:
        named = command_package(release.name, release.version)
        fix = Fix("Name the version; then both take it:", (run("pip", "install", named),))
        yield Finding(str(release), fix=fix, cause=release.name)
