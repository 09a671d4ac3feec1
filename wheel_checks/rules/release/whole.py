"""Is the release complete and consistent? Judges all its files together, by the expectation file."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TypeVar

from packaging.requirements import Requirement
from packaging.tags import Tag
from packaging.utils import canonicalize_name

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.release.expectation import Agreement, Parity
from wheel_checks.facts.release.facts import Installation, ReleaseFacts, ReleaseFile
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.model import Audience, Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import joined, plural, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.shared.accelerator import contradict, served
from wheel_checks.rules.variants.findings import falls_through, is_for_gpu, runs_nowhere, taken
from wheel_checks.targets.variant_choice import MachineChoice

KIND = "release-set"
rule = rules_of(KIND, Audience.PUBLISHER)
_SHOWN = 8  # file names or requirements in one finding

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


@rule(
    "REL101",
    "every expected file exists",
    why="For a Python and platform without a wheel, installers silently select an older release, or build from source "
    "for hours.",
    example="no wheel for 3.13t on aarch64, while every other Python and platform has one",
    fix="Build and add the file, or remove it from the expectation.",
)
def missing(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """Every cell of the matrix is filled, the source archive is there when expected, and so is all that has a hash."""
    expected = release.expectation
    for platform in expected.platforms:
        cells = [cell for cell in release.filled if cell.platform == platform.name]
        empty = [cell.python for cell in cells if not release.filled[cell]]
        if empty:
            count = "no files" if len(empty) == len(cells) else "no file"
            evidence = (
                Evidence("expected tags", ", ".join(platform.tags), platform.name),
                Evidence("missing", summarised([f"cp{python.replace('.', '')}" for python in empty], _SHOWN)),
            )
            yield Finding(
                f"{platform.name} has {count} for Python {joined(empty)}", evidence, Fix("Build the missing files.")
            )
    if expected.sdist and all(file.is_wheel for file in release.own_files):
        yield Finding("the source archive is missing", fix=Fix("Add it, or set sdist = false."))
    names = {file.file_name for file in release.files}
    if absent := [name for name in expected.hashes if name not in names]:
        shown = Evidence("missing", summarised(absent, _SHOWN))
        yield Finding(
            f"the release lacks {plural(len(absent), 'file')} of the list of hashes", (shown,), Fix("Add them.")
        )


@rule(
    "REL107",
    "METADATA is the same in all wheels of the release",
    why="Resolvers (uv, Poetry) read the METADATA of one wheel and apply it to all: on every other platform they then "
    "install that wheel's requirements.",
    example="`Requires-Dist: triton==3.6.0` on x86_64 only, without a marker",
    fix="Write one list of requirements, with markers (`platform_machine`) for the differences.",
)
def metadata(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """The same Requires-Dist, Requires-Python and Provides-Extra, in all files or (as expected) on each platform."""
    scope = release.expectation.metadata
    if scope is Agreement.NONE:
        need(Unavailable('the expectation allows differences (same-metadata = "none")'))
    wheels = [file for file in release.own_files if isinstance(file.metadata, CoreMetadata)]
    if scope is Agreement.ALL:
        yield from _differing_metadata(wheels, "")
        return
    for platform in release.expectation.platforms:
        on = [file for file in wheels if any(cell.platform == platform.name for cell in file.cells)]
        yield from _differing_metadata(on, f" on {platform.name}")


def _differing_metadata(wheels: Sequence[ReleaseFile], where: str) -> Iterator[Finding]:
    groups = _groups(wheels, _dependencies)
    for group in groups[1:]:
        usual = groups[0]
        here, there = _dependencies(group[0]), _dependencies(usual[0])
        evidence = (
            Evidence(
                "only in these",
                summarised(sorted(here - there), _SHOWN) or "nothing",
                summarised([f.file_name for f in group], _SHOWN),
            ),
            Evidence("only in the others", summarised(sorted(there - here), _SHOWN) or "nothing", usual[0].file_name),
        )
        count = f"{len(group)} of {len(wheels)} wheels" if len(group) > 1 else group[0].file_name
        fix = Fix("Build all wheels with one list of requirements, and markers for the differences.")
        yield Finding(f"METADATA{where} differs in {count}", evidence, fix)


def _dependencies(file: ReleaseFile) -> frozenset[str]:
    """The fields of METADATA that a resolver reads, as lines in one spelling."""
    facts = need(file.metadata)
    return frozenset(
        (
            *(f"Requires-Dist: {_normalised(requirement)}" for requirement in facts.requirements),
            *(f"Requires-Dist: {text}" for text, _ in facts.bad_requirements),
            *(f"Provides-Extra: {extra}" for extra in facts.provides_extra),
            *([f"Requires-Python: {facts.requires_python}"] if facts.requires_python else []),
        )
    )


def _normalised(requirement: Requirement) -> str:
    """In one spelling: ml_dtypes and ml-dtypes are one project."""
    return str(requirement).replace(requirement.name, canonicalize_name(requirement.name), 1)


@rule(
    "REL108",
    "files for the same Python and platform have different build tags",
    why="Of two files with the same tags and build number an installer may select either: the order on the page "
    "decides, and it is unknown which one users run.",
    example="`torch-2.11.0-...manylinux_2_28_x86_64.whl` and `torch-2.11-...manylinux_2_28_x86_64.whl`",
    fix="Remove one, or give the newer file a build tag.",
)
def ambiguous(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """No two files of a cell have the same interpreter and ABI tags and build tag, and a platform tag in common."""
    found: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for cell, files in release.filled.items():
        for group in _groups(files, _rank):
            for rivals in _rivals(group):
                found[tuple(file.file_name for file in rivals)].append(f"{cell.python} on {cell.platform}")
    for names, cells in found.items():
        evidence = tuple(Evidence("file", name) for name in names[:_SHOWN])
        message = f"{len(names)} files compete for Python {joined(cells)}"
        yield Finding(message, evidence, Fix("Remove one, or rebuild the newer one with a build tag."))


def _rivals(files: Sequence[ReleaseFile]) -> list[list[ReleaseFile]]:
    """Those that share a platform tag; of wheels for several machines or systems installers take the nearer one."""
    groups: list[tuple[set[str], list[ReleaseFile]]] = []
    for file in files:
        platforms = {tag.platform for tag in (file.name.tags if file.name else ())}
        near = [group for group in groups if group[0] & platforms]
        groups = [group for group in groups if group not in near]
        merged = [other for _, others in near for other in others]
        groups.append((platforms.union(*(tags for tags, _ in near)), [*merged, file]))
    return [group for _, group in groups if len(group) > 1]


def _rank(file: ReleaseFile) -> tuple[object, ...]:
    """Installers' sort key for files of one cell, apart from the platform tag."""
    tags: frozenset[Tag] = file.name.tags if file.name else frozenset()
    return frozenset((tag.interpreter, tag.abi) for tag in tags), file.name.build_number if file.name else ()


@rule(
    "REL109",
    "all files have the same version",
    why="A file of another version, or with another local version, belongs to another release: this release lacks the "
    "file, or ships one that was not tested.",
    example="`torch-2.11.0+cpu-...whl` among the wheels of 2.11.0+cu130",
    fix="Remove the file, or check one version (torch==2.11.0).",
)
def versions(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """The version of most files is that of all, local part included."""
    others = [file for file in release.files if file.version is not None and not file.own]
    for group in _groups(others, lambda file: file.version):
        evidence = (Evidence(str(group[0].version), summarised([file.file_name for file in group], _SHOWN)),)
        count = f"{len(group)} files are" if len(group) > 1 else f"{group[0].file_name} is"
        message = f"{count} of version {group[0].version}, but the release is {release.version}"
        yield Finding(message, evidence, Fix("Remove them from the release."))


@rule(
    "REL110",
    "platforms in one [[parity]] entry offer the same Pythons and accelerator, in similar sizes",
    why="Users of one architecture expect the same Pythons and the same accelerator version as users of the other.",
    example="torch 2.10.0: CUDA 12.8 on x86_64, CPU on aarch64",
    fix="Build the missing files, or the accelerator that the other platform has.",
)
def parity(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """Pairs of platforms agree in Pythons, accelerators, and (a warning) median sizes, as each [[parity]] demands."""
    if not release.expectation.parity:
        need(Unavailable("the expectation has no [[parity]]"))
    for demand in release.expectation.parity:
        first, *others = demand.platforms
        for other in others:
            yield from _compare(release, demand, first, other)


def _compare(release: ReleaseFacts, demand: Parity, first: str, other: str) -> Iterator[Finding]:
    pairs = [(platform, release.files_on(platform)) for platform in (first, other)]
    if demand.pythons:
        filled = [[c.python for c, files in release.filled.items() if files and c.platform == p] for p, _ in pairs]
        for platform, here, there in ((first, *filled), (other, *reversed(filled))):
            if extra := [python for python in here if python not in there]:
                yield Finding(
                    f"only {platform} has files for Python {joined(extra)}", (Evidence("parity", f"{first}, {other}"),)
                )
    if demand.accelerator and all(files for _, files in pairs):
        yield from _same_accelerators(*((platform, _accelerators(files)) for platform, files in pairs))
    sizes = [size for platform, _ in pairs if (size := release.median_sizes.get(platform))]
    if demand.size_ratio and len(sizes) == 2 and (ratio := max(sizes) / min(sizes)) > demand.size_ratio:
        evidence = tuple(
            Evidence(p, f"{size:,.0f} bytes", "median") for p, size in zip((first, other), sizes, strict=True)
        )
        message = f"wheels of {first} and {other} differ in size by a factor of {ratio:.2f}"
        yield Finding(message, evidence, severity=Severity.WARNING)


def _same_accelerators(
    first: tuple[str, Sequence[AcceleratorFacts | Unavailable]],
    other: tuple[str, Sequence[AcceleratorFacts | Unavailable]],
) -> Iterator[Finding]:
    """At most one finding: the platforms differ, or (undecided) not all files are known well enough to say."""
    labels = [{("unknown" if isinstance(a, Unavailable) else a.label) for a in found} for _, found in (first, other)]
    evidence = tuple(
        Evidence(platform, joined(sorted(shown)) or "unknown")
        for (platform, _), shown in zip((first, other), labels, strict=True)
    )
    known = [a for _, found in (first, other) for a in found if isinstance(a, AcceleratorFacts)]
    unread = next((a.reason for _, found in (first, other) for a in found if isinstance(a, Unavailable)), "")
    unread = unread or next((a.unread for a in known if a.unread and not a.shows_gpu), "")
    alike = all(served(a) == served(b) and not contradict(a.version, b.version) for a in known for b in known)
    message = " while ".join(f"{item.label} is {item.value}" for item in evidence)
    if unread:
        yield Finding(
            f"not proven that {first[0]} and {other[0]} have the same accelerator: {unread}", evidence, undecided=True
        )
    elif not alike:
        yield Finding(message, evidence, Fix(f"Build {other[0]} with the accelerator of {first[0]}."))


def _accelerators(files: Iterable[ReleaseFile]) -> list[AcceleratorFacts | Unavailable]:
    return [file.accelerator for file in files]


@rule(
    "REL111",
    "no exemption has expired",
    Severity.WARNING,
    why="A finding that is ignored temporarily must not be ignored forever: after its date it counts again.",
    example="`[[ignore]]` with `until = 2026-06-30`, on the first of July",
    fix="Remove the entry if its cause is gone; otherwise decide again and set a new date.",
)
def expired(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """Every [[ignore]] is within its date."""
    for exemption in release.expectation.exemptions:
        if exemption.until < release.today:
            evidence = (Evidence("reason", exemption.reason), Evidence("files", exemption.files))
            message = f"the exemption from {joined(exemption.rules)} expired on {exemption.until}"
            yield Finding(message, evidence, Fix("Remove the entry, or set a new date."))


@rule(
    "REL112",
    "every machine that the release promises to support gets a matching variant",
    why="A machine whose GPU no variant supports silently gets the variant for CPUs or the plain wheel. The promise of "
    "the release notes is then false for its users.",
    example='`[[machine]]` with `gpus = ["T4"]`, and variants for sm_80 and newer',
    fix="Build a variant for that machine, or remove the promise.",
)
def machines_served(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """Each machine gets the variant that is expected, else one for its GPU, and it claims code that runs there."""
    if not release.machine_choices:
        need(Unavailable("the expectation has no [[machine]]"))
    for made, wanted in release.machine_choices:
        if finding := _unserved(made, wanted):
            yield replace(finding, message=f"{finding.message} ({made.choice.target.interpreter})")


def _unserved(made: MachineChoice, wanted: str) -> Finding | None:
    """The fault of a machine's choice, if the label ``wanted`` is expected, "" for any that supports it."""
    machine = made.machine.label
    if wanted and made.label != wanted:
        got = f"the variant {made.label}" if made.label else "no variant"
        unread = made.metadata.reason if isinstance(made.metadata, Unavailable) else ""
        why = unread or made.passed_over.get(wanted, "the release does not list it, or prefers another one")
        return Finding(f"{machine} gets {got}; expected {wanted}", (Evidence(wanted, why, "variants.json"),))
    if wanted:
        return runs_nowhere(made)
    if made.machine.gpu and made.release is None:
        return Finding(f"{machine} gets {taken(made)}: the release has no variants")
    if finding := falls_through(made) or runs_nowhere(made):
        return finding
    if made.machine.gpu and not is_for_gpu(made.variant):
        return Finding(f"{machine} gets {taken(made)}: the release has no variants for GPUs")
    return None if made.choice.chosen else Finding(f"{machine} gets {taken(made)}")


@rule(
    "REL113",
    "the wheels' requirements can be installed on every promised platform and Python",
    why="A release whose requirements no index satisfies cannot be installed, and resolvers silently select an older "
    "one.",
    example="vllm 0.33.0, which required a certifi that did not exist",
    fix="Change the requirement that the finding names, or first publish what it requires.",
)
def installable(release: ReleaseFacts, _: Expectations) -> Iterable[Finding]:
    """The requirements of each cell's file resolve, to wheels or source archives. Nothing is built.

    Extras are for some users, and some for one platform: an extra that cannot be installed is a warning. They are not
    judged on free-threaded Pythons.
    """
    found = need(release.installations)
    fix = Fix(
        "Change the requirement, or first publish what it requires. --extra-index-url adds an index that has it, "
        "--find-links adds unpublished files; `resolve = false` in the expectation skips this check."
    )
    for group in _groups(found, lambda one: (one.extra, one.conflict, one.missing, one.unproven)):
        first, evidence = group[0], (Evidence("cells", summarised([" ".join(one.cell) for one in group], _SHOWN)),)
        where = _where(release, group)
        what = f"extra {first.extra} of the release" if first.extra else "release"
        severity = Severity.WARNING if first.extra else None
        if first.conflict:
            message = f"{where} no versions satisfy the requirements of the {what}: {first.conflict}"
            yield Finding(message, evidence, fix, severity=severity)
        elif first.missing:
            message = f"{where} {joined(first.missing)} has no file, but the {what} requires it"
            yield Finding(message, evidence, fix, severity=severity)
        elif first.unproven:
            message = f"not proven that the {what} can be installed {where}: {first.unproven}"
            yield Finding(message, evidence, fix, severity=severity, undecided=not first.extra)


def _where(release: ReleaseFacts, group: Sequence[Installation]) -> str:
    """``on x86_64 and aarch64 (Python 3.12)``, or ``on every platform``."""
    platforms = list(dict.fromkeys(one.cell.platform for one in group))
    pythons = list(dict.fromkeys(one.cell.python for one in group))
    if {one.cell for one in group} >= {cell for cell, files in release.filled.items() if files}:
        return "on every platform"
    return f"on {joined(platforms)} (Python {joined(pythons)})"


def _groups(files: Iterable[T], key: Callable[[T], K]) -> list[list[T]]:
    """Those with equal keys, the largest group first."""
    groups: dict[K, list[T]] = defaultdict(list)
    for file in files:
        groups[key(file)].append(file)
    return sorted(groups.values(), key=len, reverse=True)
