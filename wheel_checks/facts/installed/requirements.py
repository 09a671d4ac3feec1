"""Compares the requirements of each installed distribution with the installed versions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.accelerator.signals import marker_fault
from wheel_checks.facts.installed.facts import Distribution, UnmetRequirement
from wheel_checks.model import Unavailable
from wheel_checks.parsing import version_or_none

Active = Mapping[str, Sequence[Requirement]]
"""The requirements of each distribution, by its normalized name, that are active in the environment."""


def active_in(distributions: Iterable[Distribution], markers: Mapping[str, str]) -> Active:
    """The requirements of each distribution in an environment with these marker variables (PEP 508).

    An extra is active if another distribution requests it (``cuda-toolkit[cublas]``); extras that a user requested are
    recorded nowhere. Requirements whose marker cannot be evaluated are omitted.
    """
    required = {d.name: _requirements(d) for d in distributions if not d.shadowed_by}
    extras: defaultdict[str, set[str]] = defaultdict(set)
    while True:
        active = {
            name: [r for r in requirements if _holds(r, markers, extras[name])]
            for name, requirements in required.items()
        }
        requested = {(canonicalize_name(r.name), extra) for rs in active.values() for r in rs for extra in r.extras}
        new = {(name, extra) for name, extra in requested if name in required and extra not in extras[name]}
        if not new:
            return active
        for name, extra in new:
            extras[name].add(extra)


def unmet(active: Active, distributions: Iterable[Distribution]) -> dict[str, tuple[UnmetRequirement, ...]]:
    """The requirements that are not met, by the name of the distribution that has them."""
    versions = {d.name: d.version for d in distributions if not d.shadowed_by}
    failing = {
        name: tuple(
            UnmetRequirement(requirement, found)
            for requirement in requirements
            if not _met(requirement, found := versions.get(canonicalize_name(requirement.name), ""))
        )
        for name, requirements in active.items()
    }
    return {name: requirements for name, requirements in failing.items() if requirements}


def required_by(name: str, active: Active) -> dict[str, None]:
    """The names of all that a distribution requires, directly and through others, nearest first; itself included."""
    reached = {name: None}
    queue = [name]
    for current in queue:
        for requirement in active.get(current, ()):
            other = canonicalize_name(requirement.name)
            if other not in reached:
                reached[other] = None
                queue.append(other)
    return reached


def _requirements(distribution: Distribution) -> tuple[Requirement, ...]:
    return () if isinstance(distribution.metadata, Unavailable) else distribution.metadata.requirements


def _holds(requirement: Requirement, markers: Mapping[str, str], extras: Iterable[str]) -> bool:
    if requirement.marker is None:
        return True
    if marker_fault(requirement, markers):
        return False
    return any(requirement.marker.evaluate({**markers, "extra": extra}) for extra in ("", *extras))


def _met(requirement: Requirement, version: str) -> bool:
    """Whether the installed version will do. One that is not a PEP 440 version, or came from a URL, counts as given."""
    parsed = version_or_none(version)
    return requirement.specifier.contains(parsed, prereleases=True) if parsed else bool(version)
