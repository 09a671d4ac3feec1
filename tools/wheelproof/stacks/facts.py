"""From what was read of the wheels of a resolution to the facts of the stack."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import NotFoundError
from wheel_checks.facts.accelerator.signals import CPU, GPU
from wheel_checks.facts.stack.facts import (
    NO_FILE,
    SDIST,
    WHEEL,
    Conflict,
    Demand,
    LinkedPackage,
    StackFacts,
    StackPackage,
    Unhashed,
    chain_to,
    find_demands,
    gpu_builds,
)
from wheel_checks.facts.wheel.source_archive import SourceArchive
from wheel_checks.formats.lock.model import LockedPackage
from wheel_checks.formats.secrets import redact
from wheel_checks.model import Unavailable
from wheel_checks.sources.uv.explanation import Explanation
from wheel_checks.sources.uv.resolver import Unusable
from wheel_checks.targets.selection import Choice, Reason, choose
from wheel_checks.targets.target import Target
from wheelproof.stacks.packages import Pick
from wheelproof.stacks.places import place_of
from wheelproof.wheels.asked import Asked
from wheelproof.wheels.indexes import KnownIndexes
from wheelproof.wheels.model import JudgedWheel
from wheelproof.wheels.resolving import Settled

_NO_WHEEL = Unavailable("there is no wheel to read")


def build_facts(
    asked: Asked,
    target: Target,
    settled: Settled,
    picks: Sequence[Pick],
    judged: Mapping[str, JudgedWheel],
    indexes: KnownIndexes,
    gpus: Sequence[str],
    *,
    expected: str = "",
    unhashed: Sequence[Unhashed] | None = None,
    left_out: Container[str] = (),
) -> StackFacts:
    """The facts of the resolved stack. ``judged`` maps names of packages to what was read of their wheels.

    ``expected`` is the accelerator that torch is expected to have. ``unhashed`` are the lines without a hash of a file
    with hashes, None for what was resolved: then nothing can be missing but what is ``left_out``.
    """
    resolution, archives = settled.resolution, settled.archives
    linked = [_linked(pick.package, judged.get(pick.package.name), archives.get(pick.package.name)) for pick in picks]
    demands = find_demands(asked.known, linked, target)
    labels = {package.label: package.name for package in linked}
    extras = {package.name: package.cuda_extras for package in linked}
    packages = [_package(pick, judged.get(pick.package.name), target) for pick in picks]
    conflicts = []
    for unusable in resolution.unusable:
        choice = missing_choice(unusable, demands.get(unusable.name, ()), target, indexes)
        if _is_about_versions(choice):
            conflicts.append(conflict_of(unusable.explanation))
        else:
            packages.append(_without_wheel(unusable, choice, target))
    wanted = f"a GPU is required ({', '.join(gpus)})" if gpus else ""
    if expected in GPU and not wanted:
        wanted = f"{expected} is expected"
    builds = gpu_builds(packages)
    by_name = {pick.package.name: pick for pick in picks}
    finished: list[StackPackage] = []
    for package in packages:
        other = next((build for build in builds if build.name != package.name), None)
        pick = by_name.get(package.name)
        cpu_reason = asked_for_cpu(asked.chosen, demands.get(package.name, ()), pick)
        by_others = other is not None and not cpu_reason and expected != CPU
        reason = wanted or (f"{other.label} is built for {_label(other)}" if other and by_others else "")
        chain = chain_to(package.name, demands, labels)
        finished.append(
            replace(
                package,
                demands=demands.get(package.name, ()),
                chain=chain,
                gpu_reason=reason,
                cpu_reason=cpu_reason,
                cuda_extras=extras.get(package.name, ()),
                archive=archives.get(package.name),
                unread_archive=settled.failed.get(package.name, ""),
                place=place_of(package.name, chain, asked),
            )
        )
    named = tuple(sorted(finished, key=lambda p: p.name))
    there = {package.name for package in named} | {canonicalize_name(Requirement(u.text).name) for u in unhashed or ()}
    missing = () if unhashed is None else sorted(name for name in demands.keys() - there if name not in left_out)
    return StackFacts(
        asked.names,
        target,
        named,
        tuple(conflicts),
        unfinished=settled.unfinished,
        refused=settled.refused,
        pre_releases=settled.pre_releases,
        unhashed=tuple(unhashed or ()),
        unlisted=tuple(demand for name in missing for demand in demands[name][:1]),
    )


def asked_for_cpu(chosen: Sequence[str], demands: Sequence[Demand], pick: Pick | None) -> str:
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
    named = [place, *([pick.package.registry, *(file.url for file in pick.package.files)] if pick else [])]
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
    return LinkedPackage(package.name, package.version or metadata.version, metadata.requirements)


def _package(pick: Pick, item: JudgedWheel | None, target: Target) -> StackPackage:
    if pick.wheel is None:
        distribution = SDIST if pick.choice.sdist_only or pick.package.source else NO_FILE
        where = f"{pick.package.name} is installed from {'a ' * (pick.package.source != 'vcs')}{pick.package.source}"
        told = where if pick.package.source else pick.choice.explanation
        return StackPackage(
            pick.package.name,
            pick.package.version,
            target,
            distribution,
            _NO_WHEEL,
            choice=pick.choice,
            explanation=told,
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


def missing_choice(unusable: Unusable, demands: Sequence[Demand], target: Target, indexes: KnownIndexes) -> Choice:
    """What the index offers of a package of which uv found no wheel, under all demands on it together."""
    specifiers = [str(d.requirement.specifier) for d in demands if d.requirement.specifier]
    requirement = Requirement(f"{unusable.name}{','.join(specifiers)}")
    try:
        return choose(requirement, indexes.files(unusable.name), target)
    except NotFoundError as error:
        return Choice(requirement, target, explanation=error.what)
