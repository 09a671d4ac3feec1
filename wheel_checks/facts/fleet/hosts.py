"""Many hosts, compared: the values that most of them have, and the few hosts that deviate."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from wheel_checks.facts.fleet.nodes import Nodes
from wheel_checks.facts.fleet.rates import Measured, Rates, is_rate, judge, rates_in
from wheel_checks.facts.fleet.report import ABSENT, DOCTOR, DOMAIN, GPUS, UNKNOWN, Facts, Host, ReportSource
from wheel_checks.facts.fleet.topology import MOSTLY, NOWHERE, Topology

_FEW_VALUES = 16  # with more values than half of the hosts, and more than these, a fact is each host's own


@dataclass(frozen=True, slots=True)
class Difference:
    """A fact on which the hosts do not agree.

    ``common`` are frequent values, the most frequent first, and ``rare`` the others, the rarest first, both with the
    names of their hosts. ``compared`` are all of them.
    """

    fact: str
    common: Mapping[str, tuple[str, ...]]
    rare: Mapping[str, tuple[str, ...]]
    compared: frozenset[str] = frozenset()

    @property
    def deviating(self) -> frozenset[str]:
        """The names of the hosts with a rare value."""
        return frozenset(name for names in self.rare.values() for name in names)

    @property
    def by_value(self) -> Iterator[tuple[frozenset[str], Difference]]:
        """The hosts of each rare value, and the difference limited to that value."""
        for value, names in self.rare.items():
            yield frozenset(names), replace(self, rare={value: names})


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An input that is not a report: its path, and the reason."""

    source: str
    reason: str


@dataclass(frozen=True)
class FleetFacts:
    """All hosts, in order of their names. ``expected`` are the names that were requested (empty if not given).

    ``unexpected`` are further hosts, if names were requested. ``repeated`` are reports replaced by a newer one of the
    same command about the same host. ``named_places`` locate hosts, ``tables`` are the requirements for them.
    """

    hosts: tuple[Host, ...]
    expected: tuple[str, ...] = ()
    unexpected: tuple[str, ...] = ()
    unreadable: tuple[Unreadable, ...] = ()
    repeated: tuple[tuple[str, ReportSource], ...] = ()
    named_places: Topology = NOWHERE
    tables: tuple[Nodes, ...] = ()

    @cached_property
    def topology(self) -> Topology:
        """The places of the hosts: ``named_places``, and the NVLink domains that the doctors saw."""
        return self.named_places.with_places(DOMAIN, self.domains) if self.domains else self.named_places

    @cached_property
    def domains(self) -> dict[str, str]:
        """The NVLink domain of each host that has one: the UUID of its cluster and the number of its clique."""
        return {name: value for name, value in self.known_domains.items() if value != ABSENT}

    @cached_property
    def known_domains(self) -> dict[str, str]:
        """As ``domains``, and "none" for a host whose GPUs have no domain; unknown hosts are omitted."""
        reports = ((host.name, report.facts) for host in self.hosts for report in host.reports)
        return {name: value for name, facts in reports if facts and (value := facts.get(DOMAIN))}

    @cached_property
    def _values(self) -> dict[str, dict[str, list[str]]]:
        every = values_of(self.hosts)
        return {fact: values for fact, values in every.items() if fact != DOMAIN and not is_rate(fact)}

    @property
    def measured(self) -> Iterator[Measured]:
        """The rates of all hosts."""
        for host in self.hosts:
            for report in host.reports:
                yield from rates_in(host.name, report.source.command, report.facts or {})

    @cached_property
    def rates(self) -> Rates:
        """The rates, with those lower than on other hosts."""
        return judge(self.measured, self.topology)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        """The most suspicious first: a fact on which one host deviates, before one on which five do."""
        kinds = self._values.get(GPUS, {})
        found = [
            compare(fact, by_value, self.topology, kinds)
            for fact, by_value in self._values.items()
            if len(by_value) > 1 and fact not in self.individual
        ]
        # sorted() is stable, so that facts stay in their own order; those without a deviating host come last
        return tuple(sorted(found, key=lambda d: len(d.deviating) or len(self.hosts) + 1))

    @cached_property
    def individual(self) -> tuple[str, ...]:
        """The facts that are not compared, since most hosts have a value that no other one has."""
        return tuple(
            fact
            for fact, by_value in self._values.items()
            if len(by_value) > max(_FEW_VALUES, sum(map(len, by_value.values())) / 2)
        )

    @property
    def shared(self) -> dict[str, str]:
        """The facts that are the same on every host that reports them."""
        return {fact: next(iter(by_value)) for fact, by_value in self._values.items() if len(by_value) == 1}

    @property
    def missing(self) -> tuple[str, ...]:
        """The expected hosts without a report."""
        there = {host.name for host in self.hosts}
        return tuple(name for name in self.expected if name not in there)


def values_of(hosts: Sequence[Host]) -> dict[str, dict[str, list[str]]]:
    """For every fact, the names of the hosts by their value, from reports of the same command."""
    sections: dict[str, list[tuple[str, Facts]]] = defaultdict(list)
    for host in hosts:
        for report in host.reports:
            if report.facts is not None:
                sections[report.source.command].append((host.name, report.facts))
    values: dict[str, dict[str, list[str]]] = {}
    for command in sorted(sections, key=doctor_first):
        reports = sections[command]
        for fact in dict.fromkeys(fact for _, facts in reports for fact in facts):
            by_value: dict[str, list[str]] = defaultdict(list)
            for name, facts in reports:
                value = facts.get(fact, ABSENT)
                by_value[UNKNOWN if value is None else value].append(name)
            values[fact if command == DOCTOR else f"{command}: {fact}"] = by_value
    return values


def doctor_first(command: str) -> tuple[bool, str]:
    """A key that sorts commands by name, after the doctor."""
    return command != DOCTOR, command


def compare(
    fact: str,
    by_value: Mapping[str, Sequence[str]],
    topology: Topology = NOWHERE,
    kinds: Mapping[str, Sequence[str]] | None = None,
) -> Difference:
    """Which values are rare: those of at most as many hosts as the square root of the most frequent value's.

    Next to 71 hosts up to 8 deviate, next to 9,900 up to 99, next to 2 or 3 it is one; 20 of 60 are another kind of
    host. Of two hosts neither deviates. By the ``topology`` two whole racks of eleven deviate likewise, unless they are
    all hosts with other GPUs: ``kinds`` are the hosts by GPUs.
    """
    ordered = sorted(by_value.items(), key=lambda item: -len(item[1]))
    usual = frozenset(ordered[0][1])
    most = len(usual)
    everywhere = frozenset(name for names in by_value.values() for name in names)
    rare = {
        v: tuple(names)
        for v, names in reversed(ordered)
        if len(names) < most
        and (
            len(names) ** 2 <= most
            or (
                len(names) > 1
                and topology.is_rare(names, usual, everywhere)
                and not _are_kinds(names, everywhere, kinds or {})
            )
        )
    }
    common = {v: tuple(names) for v, names in ordered if v not in rare}
    return Difference(fact, common, rare, everywhere)


def _are_kinds(names: Sequence[str], everywhere: frozenset[str], kinds: Mapping[str, Sequence[str]]) -> bool:
    """Whether these are nearly all hosts of everywhere with some product of GPUs, and none with another."""
    products: dict[str, set[str]] = defaultdict(set)
    for gpus, hosts in kinds.items():
        products[gpus.partition(" x ")[2]].update(everywhere.intersection(hosts))
    wanted = frozenset(names)
    theirs = [hosts for hosts in products.values() if hosts & wanted]
    return len(theirs) < sum(map(bool, products.values())) and all(
        len(hosts & wanted) >= MOSTLY * len(hosts) for hosts in theirs
    )


def by_deviating(differences: Iterable[Difference]) -> dict[frozenset[str], list[Difference]]:
    """The differences by the hosts with one rare value: one host with another driver also has another CUDA."""
    groups: dict[frozenset[str], list[Difference]] = defaultdict(list)
    for difference in differences:
        for hosts, of_value in difference.by_value:
            groups[hosts].append(of_value)
    return dict(sorted(groups.items(), key=lambda item: (len(item[0]), -len(item[1]))))


def by_kinds(differences: Iterable[Difference]) -> list[list[Difference]]:
    """The differences with several common values, by how these divide the hosts: the same two kinds of hosts."""
    groups: dict[frozenset[tuple[str, ...]], list[Difference]] = defaultdict(list)
    for difference in differences:
        if len(difference.common) > 1:
            groups[frozenset(difference.common.values())].append(difference)
    return list(groups.values())
