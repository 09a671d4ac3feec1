"""Many hosts, compared: what most of them have, and which few have something else."""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from wheel_checks.model import CheckResult, Severity

UNKNOWN, ABSENT = "unknown", "none"
DOCTOR = "doctor"
RATE = "rate of "  # what the name of a fact begins with whose text is a number, in bytes or operations a second
_FEW_HOSTS, _SLOW = 3, 0.9  # of the median: what differs less differs between healthy machines

Facts = Mapping[str, str | None]


@dataclass(frozen=True, slots=True)
class ReportSource:
    """One report about a host: which ``command`` made it, where it was read, when it ``started`` (UTC, ISO 8601)."""

    command: str
    source: str
    started: str
    version: str


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Something of a report that is more than is kept: what, and how grave it can be at most.

    ``severity`` is None when nobody knows what it would have told.
    """

    what: str
    severity: Severity | None = None


@dataclass(frozen=True, slots=True)
class HostReport:
    """What one report tells of a host.

    ``facts`` are compared: one short text per name, None for one that could not be read; a fact that other hosts have
    and this one lacks is not there. ``results`` are the findings, and the checks that could not be made; ``root`` is
    the rule of the doctor's root cause ("" for none). A report with more facts than can be compared has facts None, and
    says so in ``left_out``.
    """

    source: ReportSource
    headline: str
    facts: Facts | None
    results: tuple[CheckResult, ...] = ()
    root: str = ""
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True, slots=True)
class Host:
    """A host, and its newest report of each command, the doctor's first."""

    name: str
    reports: tuple[HostReport, ...]

    @property
    def headline(self) -> str:
        """What the first report says in short."""
        return self.reports[0].headline

    @property
    def root(self) -> str:
        """The rule of the root cause, "" when no report names one."""
        return next((report.root for report in self.reports if report.root), "")

    @property
    def results(self) -> tuple[CheckResult, ...]:
        """The findings of all reports."""
        return tuple(result for report in self.reports for result in report.results)


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact on which the hosts do not agree.

    ``common`` are the values that many hosts have, the most frequent first, and ``rare`` those of few, the rarest
    first, both with the names of their hosts.
    """

    fact: str
    common: Mapping[str, tuple[str, ...]]
    rare: Mapping[str, tuple[str, ...]]

    @property
    def deviating(self) -> frozenset[str]:
        """The names of the hosts with a rare value."""
        return frozenset(name for names in self.rare.values() for name in names)


@dataclass(frozen=True, slots=True)
class SlowRate:
    """A rate (bytes or operations a second) of a ``host``, and the median of the hosts that have measured it."""

    fact: str
    host: str
    rate: float
    median: float
    hosts: int


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An input that is no report: where it is, and why."""

    source: str
    reason: str


@dataclass(frozen=True)
class FleetFacts:
    """All hosts, in order of their names. ``expected`` are the names that were asked for (none: nobody said).

    ``unexpected`` are the hosts that were not, where somebody said. ``repeated`` are reports that a newer one of the
    same command about the same host replaced.
    """

    hosts: tuple[Host, ...]
    expected: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    repeated: tuple[tuple[str, ReportSource], ...] = ()

    @cached_property
    def _every_value(self) -> dict[str, dict[str, list[str]]]:
        return values_of(self.hosts)

    @cached_property
    def _values(self) -> dict[str, dict[str, list[str]]]:
        return {fact: values for fact, values in self._every_value.items() if not _is_rate(fact)}

    @property
    def has_rates(self) -> bool:
        """Whether enough hosts have measured one rate to say which of them is slow."""
        every = (by_value for fact, by_value in self._every_value.items() if _is_rate(fact))
        return any(len(_rates_of(by_value)) >= _FEW_HOSTS for by_value in every)

    @cached_property
    def slow_rates(self) -> tuple[SlowRate, ...]:
        """Rates below nine tenths of the median of three hosts or more; the slowest first."""
        found: list[SlowRate] = []
        for fact, by_value in self._every_value.items():
            if _is_rate(fact):
                found += _slow(fact, by_value)
        return tuple(sorted(found, key=lambda each: each.rate / each.median))

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """The most suspicious first: a fact on which one host deviates, before one on which five do."""
        found = [compare(fact, by_value) for fact, by_value in self._values.items() if len(by_value) > 1]
        # sorted() is stable, so that facts stay in their own order; those without a deviating host come last
        return tuple(sorted(found, key=lambda d: len(d.deviating) or len(self.hosts) + 1))

    @property
    def shared(self) -> dict[str, str]:
        """The facts that are the same wherever they were asked for."""
        return {fact: next(iter(by_value)) for fact, by_value in self._values.items() if len(by_value) == 1}

    @property
    def missing(self) -> tuple[str, ...]:
        """The expected hosts without a report."""
        there = {host.name for host in self.hosts}
        return tuple(name for name in self.expected if name not in there)


def values_of(hosts: Sequence[Host]) -> dict[str, dict[str, list[str]]]:
    """For every fact, the names of the hosts by their value. A host counts where its report is of the same command."""
    sections: dict[str, list[tuple[str, Facts]]] = defaultdict(list)
    for host in hosts:
        for report in host.reports:
            if report.facts is not None:
                sections[report.source.command].append((host.name, report.facts))
    values: dict[str, dict[str, list[str]]] = {}
    for command in sorted(sections, key=doctor_first):
        told = sections[command]
        for fact in dict.fromkeys(fact for _, facts in told for fact in facts):
            by_value: dict[str, list[str]] = defaultdict(list)
            for name, facts in told:
                value = facts.get(fact, ABSENT)
                by_value[UNKNOWN if value is None else value].append(name)
            values[fact if command == DOCTOR else f"{command}: {fact}"] = by_value
    return values


def _slow(fact: str, by_value: Mapping[str, Sequence[str]]) -> Iterator[SlowRate]:
    rates = _rates_of(by_value)
    if len(rates) < _FEW_HOSTS:
        return
    median = statistics.median(rate for rate, _ in rates)
    for rate, host in rates:
        if rate < _SLOW * median:
            yield SlowRate(fact.replace(RATE, "", 1), host, rate, median, len(rates))


def _rates_of(by_value: Mapping[str, Sequence[str]]) -> list[tuple[float, str]]:
    """The rates of hosts, and these; without what is no number."""
    return [(rate, host) for text, hosts in by_value.items() if (rate := _number(text)) for host in hosts]


def _is_rate(fact: str) -> bool:
    return fact.partition(": ")[2].startswith(RATE)


def _number(text: str) -> float:
    """The rate that ``text`` says; 0 for what is none, as another machine may write it."""
    try:
        rate = float(text)
    except ValueError:
        return 0.0
    return rate if 0 < rate < math.inf else 0.0


def doctor_first(command: str) -> tuple[bool, str]:
    """A key that sorts commands by name, behind the doctor."""
    return command != DOCTOR, command


def compare(fact: str, by_value: Mapping[str, Sequence[str]]) -> Difference:
    """Which values are rare: those of at most as many hosts as the square root of the most frequent value's.

    Beside 71 hosts up to 8 deviate, beside 9,900 up to 99, beside 2 or 3 it is one; 20 of 60 are another kind of host.
    Of two hosts neither deviates.
    """
    ordered = sorted(by_value.items(), key=lambda item: -len(item[1]))
    most = len(ordered[0][1])
    rare = {v: tuple(names) for v, names in reversed(ordered) if len(names) < most and len(names) ** 2 <= most}
    common = {v: tuple(names) for v, names in ordered if v not in rare}
    return Difference(fact, common, rare)


def by_deviating(differences: Iterable[Difference]) -> dict[frozenset[str], list[Difference]]:
    """The differences by the hosts that deviate: one host with another driver also has another CUDA."""
    groups: dict[frozenset[str], list[Difference]] = defaultdict(list)
    for difference in differences:
        if difference.rare:
            groups[difference.deviating].append(difference)
    return dict(sorted(groups.items(), key=lambda item: (len(item[0]), -len(item[1]))))


def by_kinds(differences: Iterable[Difference]) -> list[list[Difference]]:
    """The differences with several common values, by how these divide the hosts: the same two kinds of hosts."""
    groups: dict[frozenset[tuple[str, ...]], list[Difference]] = defaultdict(list)
    for difference in differences:
        if len(difference.common) > 1:
            groups[frozenset(difference.common.values())].append(difference)
    return list(groups.values())
