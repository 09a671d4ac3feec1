"""Make the facts of a stack from the facts of its wheels."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import NotFoundError
from wheel_checks.facts.accelerator.signals import CPU, GPU
from wheel_checks.facts.accelerator.verdict import NONE, AcceleratorFacts
from wheel_checks.facts.stack.facts import (
    CONDA,
    EXTRA,
    NO_FILE,
    SDIST,
    WHEEL,
    Conflict,
    Demand,
    LinkedPackage,
    StackFacts,
    StackPackage,
    chain_to,
    find_demands,
    gpu_builds,
)
from wheel_checks.facts.stack.locked import LockedEntry, declared_by_build, declared_by_version
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.secrets import redact
from wheel_checks.model import Location, Unavailable
from wheel_checks.sources.uv.explanation import Explanation
from wheel_checks.sources.uv.resolver import Unusable
from wheel_checks.targets.selection import Choice, Reason, choose
from wheel_checks.targets.target import Target
from wheelproof.stacks.packages import Pick, ResolvedStack
from wheelproof.stacks.places import place_of
from wheelproof.wheels.asked import Requested
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.model import JudgedWheel

_NO_WHEEL = Unavailable("there is no wheel to read")


def build_facts(
    requested: Requested, stack: ResolvedStack, judged: Mapping[str, JudgedWheel], gpus: Sequence[str], expected: str
) -> StackFacts:
    """The facts of the resolved stack. ``judged`` maps package names to judged wheels.

    ``expected`` is the accelerator that torch is expected to have, "" for any.
    """
    settled, target = stack.settled, stack.target
    archives = settled.archives
    linked = [_linked(p.package, judged.get(p.package.name), archives.get(p.package.name)) for p in stack.picks]
    demands = find_demands(requested.known, linked, target)
    packages = [_package(pick, judged.get(pick.package.name), target) for pick in stack.picks]
    conflicts = []
    for unusable in settled.resolution.unusable:
        choice = _missing_choice(unusable, demands.get(unusable.name, ()), target, stack.indexes)
        if _is_about_versions(choice):
            conflicts.append(conflict_of(unusable.explanation))
        else:
            packages.append(_without_wheel(unusable, choice, target))
    packages = _demanded(packages, requested, stack, linked, demands)
    packages = _with_reasons(packages, requested, stack.picks, gpus, expected)
    packages.sort(key=lambda package: package.name)
    if stack.lock is not None:
        path, by_name = os.path.normpath(requested.files[0]), {pick.package.name: pick for pick in stack.picks}
        packages = [_with_entry(p, stack.entries.get(p.name), by_name.get(p.name), path) for p in packages]
    return StackFacts(
        requested.names,
        target,
        tuple(packages),
        tuple(conflicts),
        unfinished=settled.unfinished,
        refused=settled.refused,
        pre_releases=settled.pre_releases,
        unhashed=stack.unhashed or (),
        unlisted=_unlisted(packages, stack, demands),
        lock=stack.lock,
    )


def _demanded(
    packages: Iterable[StackPackage],
    requested: Requested,
    stack: ResolvedStack,
    linked: Iterable[LinkedPackage],
    demands: Mapping[str, tuple[Demand, ...]],
) -> list[StackPackage]:
    """The packages with their demands and, without a wheel, their source archive."""
    labels = {package.label: package.name for package in linked}
    known = {package.name: package for package in linked}
    chains = {package.name: chain_to(package.name, demands, labels) for package in packages}
    return [
        replace(
            package,
            demands=demands.get(package.name, ()),
            chain=chains[package.name],
            cuda_extras=known[package.name].cuda_extras if package.name in known else (),
            extras=known[package.name].extras if package.name in known else None,
            archive=stack.settled.archives.get(package.name),
            unread_archive=stack.settled.failed.get(package.name, ""),
            place=place_of(package.name, chains[package.name], requested),
        )
        for package in packages
    ]


def _with_reasons(
    packages: Sequence[StackPackage], requested: Requested, picks: Iterable[Pick], gpus: Sequence[str], expected: str
) -> list[StackPackage]:
    """The packages with why each should be built for a GPU, and why for the CPU."""
    wanted = f"a GPU is required ({', '.join(gpus)})" if gpus else f"{expected} is expected" if expected in GPU else ""
    builds = gpu_builds(packages)
    by_name = {pick.package.name: pick for pick in picks}
    found = []
    for package in packages:
        other = next((build for build in builds if build.name != package.name), None)
        cpu_reason = requested_for_cpu(requested.chosen, package.demands, by_name.get(package.name))
        by_others = other is not None and not cpu_reason and expected != CPU
        reason = wanted or (f"{other.label} is built for {_label(other)}" if other and by_others else "")
        found.append(replace(package, gpu_reason=reason, cpu_reason=cpu_reason))
    return found


def _unlisted(
    packages: Iterable[StackPackage], stack: ResolvedStack, demands: Mapping[str, tuple[Demand, ...]]
) -> tuple[Demand, ...]:
    """Requirements that files with hashes do not list; a resolution has none."""
    if stack.unhashed is None:
        return ()
    there = {package.name for package in packages} | stack.left_out.keys()
    there |= {canonicalize_name(Requirement(line.text).name) for line in stack.unhashed}
    return tuple(demands[name][0] for name in sorted(demands.keys() - there) if demands[name])


def requested_for_cpu(chosen: Sequence[str], demands: Sequence[Demand], pick: Pick | None) -> str:
    """Who asks for a build for the CPU by its name: an extra or a group, a version (``==2.9.0+cpu``), an index or an
    address with a part ``cpu``; "" for no one.
    """
    for name in chosen:
        if CPU in _words(name):
            return f"{name} was chosen"
    for demand in demands:
        if any(CPU in _words(specifier.version.partition("+")[2]) for specifier in demand.requirement.specifier):
            return str(demand)
    wheel = pick.wheel if pick else None
    listing = wheel.listing if wheel else None
    place = (listing.index or listing.url) if listing else str(wheel.location) if wheel else ""
    named = [place, *([pick.package.registry or "", *(file.url for file in pick.package.files)] if pick else [])]
    for address in named:
        folders = urlsplit(address).path.split("/")
        if any(CPU in _words(folder) for folder in (folders[:-1] if address.endswith(".whl") else folders)):
            return f"it comes from {redact(address)}"
    return ""


def _words(name: str) -> list[str]:
    return re.split(r"[-_.+ ]", name.lower())


def _is_about_versions(choice: Choice) -> bool:
    """True when the index has files for the target, or none of the versions that all demands allow together."""
    versions = (Reason.VERSION, Reason.NO_CANDIDATE)
    nowhere = choice.chosen is None and choice.sdist is None and bool(choice.rejected)
    return choice.chosen is not None or (nowhere and all(r.reason in versions for r in choice.rejected))


def conflict_of(explanation: Explanation, computed: Sequence[SourceArchive] = ()) -> Conflict:
    """The explanation of uv as a fact of the stack."""
    return Conflict(explanation.sentences, tuple(map(str, explanation.demands)), explanation.hints, tuple(computed))


def _label(package: StackPackage) -> str:
    facts = package.known_accelerator
    return facts.label if facts and facts.accelerator in GPU else ""


def _linked(package: LockedPackage, item: JudgedWheel | None, archive: SourceArchive | None) -> LinkedPackage:
    if archive is not None:
        return LinkedPackage(package.name, package.version, archive.requirements)
    facts = item.facts if item else None
    metadata = facts.metadata if facts else None
    if metadata is None or isinstance(metadata, Unavailable):
        return LinkedPackage(package.name, package.version)
    named = {extra for requirement in metadata.requirements for extra in EXTRA.findall(str(requirement.marker or ""))}
    extras = frozenset(map(canonicalize_name, named.union(metadata.provides_extra)))
    return LinkedPackage(package.name, package.version or metadata.version, metadata.requirements, extras)


def _package(pick: Pick, item: JudgedWheel | None, target: Target) -> StackPackage:
    if pick.wheel is None:
        distribution = SDIST if pick.choice.sdist_only or pick.package.source else NO_FILE
        where = f"{pick.package.name} is installed from {'a ' * (pick.package.source != 'vcs')}{pick.package.source}"
        why = where if pick.package.source else pick.choice.explanation
        return StackPackage(
            pick.package.name,
            pick.package.version,
            target,
            distribution,
            _NO_WHEEL,
            choice=pick.choice,
            explanation=why,
        )
    facts = item.facts if item else None
    version = pick.package.version or str(pick.choice.version or "")
    return StackPackage(
        pick.package.name,
        version,
        target,
        WHEEL,
        facts.accelerator if facts else Unavailable("the wheel could not be read"),
        pick.wheel.file_name,
        choice=pick.choice,
        siblings=facts.siblings if facts else (),
    )


def _without_wheel(unusable: Unusable, choice: Choice, target: Target) -> StackPackage:
    version = str(choice.version or choice.newest_release or "")
    distribution = SDIST if choice.sdist_only else NO_FILE
    name = canonicalize_name(unusable.name)
    return StackPackage(name, version, target, distribution, _NO_WHEEL, choice=choice, explanation=choice.explanation)


def _missing_choice(unusable: Unusable, demands: Sequence[Demand], target: Target, indexes: KnownIndexes) -> Choice:
    """The offers of the index for a package without a wheel, under all demands on it."""
    specifiers = [str(d.requirement.specifier) for d in demands if d.requirement.specifier]
    requirement = Requirement(f"{unusable.name}{','.join(specifiers)}")
    try:
        return choose(requirement, indexes.files(unusable.name), target)
    except NotFoundError as error:
        return Choice(requirement, target, explanation=error.what)


def _with_entry(package: StackPackage, entry: LockedEntry | None, pick: Pick | None, path: str) -> StackPackage:
    if entry is None or pick is None:
        return package
    taken = pick.choice.chosen or pick.choice.sdist
    place = Location(file=path, line=entry.line or None)
    file_name = package.file_name or (taken.file_name if taken else "")
    known = replace(package, locked=entry, file_name=file_name, place=place)
    if pick.package.source == CONDA:
        files = pick.package.files
        named = files[0].file_name if files else pick.package.label
        declared = declared_by_build(entry.build, package.version)
        return replace(
            known, distribution=CONDA, accelerator=declared, file_name=named, explanation=f"build {entry.build}"
        )
    if entry.misfit:
        return replace(known, distribution=NO_FILE, explanation=entry.misfit)
    if entry.wrong is not None:
        reason = Unavailable("its hash on the index differs from that in the lock")
        return replace(known, distribution=_kind(pick), accelerator=reason, explanation=reason.reason)
    if entry.unread:
        version = str(pick.choice.version or package.version)
        declared = declared_by_version(version)
        label = "declared" if isinstance(declared, Unavailable) else f"declared: {declared.label}"
        return replace(known, distribution=_kind(pick), accelerator=declared, explanation=f"{label}, not read")
    is_pure = package.archive is not None and package.archive.is_pure
    return replace(known, accelerator=AcceleratorFacts(NONE, "", "", ())) if is_pure else known


def _kind(pick: Pick) -> str:
    return SDIST if pick.choice.sdist is not None else WHEEL
