"""The graph of what installed distributions require of one another: pure.

Which extras a user requested is recorded nowhere. An extra counts as asked for where everything that it requires is
installed as it requires it, or where another distribution asks for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.facts.accelerator.signals import marker_fault
from wheel_checks.facts.pins.outcome import extras_of
from wheelproof.doctor.repair.installed import Distribution


@dataclass(frozen=True, slots=True)
class Unmet:
    """A requirement that is not met: ``found`` is the installed version, "" if none."""

    by: Distribution
    requirement: Requirement
    found: str

    @property
    def name(self) -> str:
        """The normalized name of what is required."""
        return canonicalize_name(self.requirement.name)

    def __str__(self) -> str:
        have = f"{self.found} is installed" if self.found else "it is not installed"
        wanted = f"{self.requirement.name}{self.requirement.specifier}"
        return f"{self.by.label} requires {wanted}, and {have}"


@dataclass(frozen=True)
class Graph:
    """Distributions by name, and the variables of markers in their environment."""

    distributions: Mapping[str, Distribution]
    markers: Mapping[str, str]

    def active(self, distribution: Distribution, extras: Iterable[str] = ()) -> Iterator[Requirement]:
        """What it requires here, with these extras."""
        return (one for one in distribution.requirements if self._holds(one, extras))

    def extras(self) -> dict[str, set[str]]:
        """The extras that count, by the name of the distribution."""
        found = {name: set(self._installed_extras(one)) for name, one in self.distributions.items()}
        while True:
            asked = {
                (str(canonicalize_name(requirement.name)), extra)
                for name, one in self.distributions.items()
                for requirement in self.active(one, found[name])
                for extra in requirement.extras
            }
            new = {(name, extra) for name, extra in asked if name in found and extra not in found[name]}
            if not new:
                return found
            for name, extra in new:
                found[name].add(extra)

    def unmet(self) -> tuple[Unmet, ...]:
        """The requirements, without those of extras that nothing asks for, that are not met."""
        extras = self.extras()
        return tuple(
            Unmet(one, requirement, self._version(requirement))
            for name, one in self.distributions.items()
            for requirement in self.active(one, extras[name])
            if not self._met(requirement)
        )

    def users(self, name: str, leaving: Iterable[str] = ()) -> tuple[Distribution, ...]:
        """The distributions that require ``name``, by whatever extra, without those that are ``leaving``."""
        gone = set(leaving)
        return tuple(
            one
            for other, one in self.distributions.items()
            if other != name and other not in gone and any(self._names(r, name) for r in one.requirements)
        )

    def closure(self, name: str) -> set[str]:
        """The names of all that a distribution requires, directly and through others; itself included."""
        extras, reached, queue = self.extras(), {name}, [name]
        for current in queue:
            one = self.distributions.get(current)
            for requirement in self.active(one, extras[current]) if one else ():
                other = str(canonicalize_name(requirement.name))
                if other not in reached:
                    reached.add(other)
                    queue.append(other)
        return reached

    def _names(self, requirement: Requirement, name: str) -> bool:
        own = extras_of((requirement,))
        return canonicalize_name(requirement.name) == name and self._holds(requirement, own)

    def _installed_extras(self, distribution: Distribution) -> Iterator[str]:
        named = {extra for one in distribution.requirements for extra in extras_of((one,))}
        for extra in named:
            if self._is_whole(distribution, extra, frozenset()):
                yield extra

    def _is_whole(self, distribution: Distribution, extra: str, above: frozenset[tuple[str, str]]) -> bool:
        """Whether all that an extra requires is installed, with what the extras that it asks for require in turn."""
        if (distribution.name, extra) in above:
            return True
        above |= {(distribution.name, extra)}
        more = [one for one in self.active(distribution, (extra,)) if not self._holds(one, ())]
        return bool(more) and all(
            self._met(one)
            and all(
                self._is_whole(self.distributions[canonicalize_name(one.name)], inner, above) for inner in one.extras
            )
            for one in more
        )

    def _holds(self, requirement: Requirement, extras: Iterable[str]) -> bool:
        if requirement.marker is None:
            return True
        if marker_fault(requirement, self.markers):
            return False
        return any(requirement.marker.evaluate({**self.markers, "extra": extra}) for extra in ("", *extras))

    def _version(self, requirement: Requirement) -> str:
        one = self.distributions.get(canonicalize_name(requirement.name))
        return one.version if one else ""

    def _met(self, requirement: Requirement) -> bool:
        one = self.distributions.get(canonicalize_name(requirement.name))
        if one is None:
            return False
        if one.parsed is None or requirement.url:
            return True
        return requirement.specifier.contains(one.parsed, prereleases=True)
