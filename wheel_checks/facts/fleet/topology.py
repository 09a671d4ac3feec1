"""The places of hosts in a fleet: racks, trays, switches, NVLink domains. Each dimension has a value by host."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from wheel_checks.errors import UsageError
from wheel_checks.facts.fleet.host_list import MOST_HOSTS, expand, folded, natural
from wheel_checks.phrases import joined

MOSTLY = 0.9  # the part of a group that must be in a set for the group to be named
_MOST_GROUPS, _MOST_PAIRED = 4, 4  # in one phrase; dimensions that are paired with each other
_MOST_DIMENSIONS = 32
_MOST_LINES, _LONGEST_NAME = 100_000, 253  # of a file; characters of a host's name (RFC 1123)
_MOST_PARTS = 6  # of a set of hosts that a phrase shows
# Words for places in host names of data centres; a letter alone is accepted only between digits, as in r12t05
_WORDS = {
    "pod": "pod",
    "row": "row",
    "su": "scalable unit",
    "block": "block",
    "cabinet": "cabinet",
    "cab": "cabinet",
    "rack": "rack",
    "rk": "rack",
    "r": "rack",
    "chassis": "chassis",
    "enclosure": "enclosure",
    "domain": "domain",
    "nvl": "domain",
    "switch": "switch",
    "sw": "switch",
    "leaf": "switch",
    "tray": "tray",
    "t": "tray",
    "slot": "slot",
    "u": "slot",
}
_PLACE = re.compile(r"([a-z]+)[-_]?([0-9]{1,18})", re.IGNORECASE)
# The names of nodes of HPE Cray EX (cray-hpe.github.io, "Component Names (xnames)")
_XNAME = re.compile(
    r"x(?P<cabinet>[0-9]{1,4})c(?P<chassis>[0-9])s(?P<slot>[0-9]{1,2})b(?P<blade>[0-9])(?:n[0-9])?", re.IGNORECASE
)
_SLURM = re.compile(r"(\w+)=(\S+)")

Groups = Mapping[str, frozenset[str]]


@dataclass(frozen=True)
class Topology:
    """``places`` has, by dimension ("rack"), the value of each host ("017"). A host may lack a dimension."""

    places: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @cached_property
    def groups(self) -> tuple[tuple[str, Groups], ...]:
        """The hosts by value, for each dimension that has several values and fewer than hosts; then pairs of them, such
        as ("rack", {"017, switch 1": ...}).
        """
        return tuple((name, groups) for name, groups, _ in self._dimensions)

    @cached_property
    def _dimensions(self) -> tuple[tuple[str, Groups, Mapping[str, str]], ...]:
        """As ``groups``, and the value of each host."""
        every = ((name, _groups(places), places) for name, places in self.places.items())
        single = [one for one in every if one[1]]
        paired = []
        for (one, first, values), (other, second, others) in itertools.combinations(single[:_MOST_PAIRED], 2):
            places = {h: f"{value}, {other} {others[h]}" for h, value in values.items() if h in others}
            groups = _groups(places)
            if len(groups) > max(len(first), len(second)):
                paired.append((one, groups, places))
        return (*single, *paired)

    def of(self, host: str) -> dict[str, str]:
        """The place of one host: its value in each dimension."""
        return {dimension: places[host] for dimension, places in self.places.items() if host in places}

    def with_places(self, dimension: str, places: Mapping[str, str]) -> Topology:
        """The same, and one more dimension."""
        return Topology({**self.places, dimension: places})

    def covered(self, hosts: Collection[str], among: Collection[str]) -> Iterator[tuple[str, Groups, Groups]]:
        """The dimensions in which ``hosts`` are nearly all of some groups and in no other: with these, and the others.

        ``among`` are the hosts that could have been in the set. At least one group is not in it.
        """
        wanted, possible = frozenset(hosts), frozenset(among)
        for dimension, groups, values in self._dimensions:
            if not all(host in values for host in wanted):
                continue
            found = {value: groups[value] & possible for value in {values[host] for host in wanted}}
            if all(len(all_) > 1 and len(all_ & wanted) >= MOSTLY * len(all_) for all_ in found.values()):
                others = {value: all_ & possible for value, all_ in groups.items() if value not in found}
                if any(len(all_) > 1 for all_ in others.values()):
                    yield dimension, {value: found[value] for value in groups if value in found}, others

    def is_rare(self, hosts: Collection[str], usual: Collection[str], among: Collection[str]) -> bool:
        """Whether ``hosts`` are whole groups, and few: at most the square root of how many have a ``usual`` host.

        Next to one such group none is rare: which of two is right is unknown.
        """
        most = frozenset(usual)
        for _, found, others in self.covered(hosts, among):
            count = sum(1 for members in others.values() if members & most)
            if len(found) ** 2 <= count > 1:
                return True
        return False

    def phrase(self, hosts: Collection[str], among: Collection[str], most: int = _MOST_PARTS) -> str:
        """``all 36 hosts of rack 017 and 018 (rack[017-018]-tray[00-17])``; without such groups the hosts alone."""
        names = folded(sorted(hosts, key=natural), most)
        found = min(self.covered(hosts, among), key=lambda one: len(one[1]), default=None) if len(hosts) > 1 else None
        if not found or len(found[1]) > _MOST_GROUPS:
            return names
        dimension, groups, _ = found
        count = sum(map(len, groups.values()))
        part = f"all {count:,}" if count == len(hosts) else f"{len(hosts):,} of {count:,}"
        return f"{part} hosts of {dimension} {joined(list(groups))} ({names})"


NOWHERE = Topology()


def guessed(hosts: Iterable[str]) -> Topology:
    """The places named in host names by common words: ``rack017-tray05``, ``r17t05``, ``pod2-leaf3-gpu7``."""
    places: dict[str, dict[str, str]] = defaultdict(dict)
    for host in hosts:
        if xname := _XNAME.match(host):
            for dimension, number in xname.groupdict().items():
                places[dimension][host] = number
            continue
        found = _PLACE.findall(host[:_LONGEST_NAME])
        for word, number in found:
            place = _WORDS.get(word.lower())
            if place and (len(word) > 1 or len(found) > 1):
                places[place].setdefault(host, number)
    return Topology(places)


def by_pattern(pattern: str, hosts: Iterable[str]) -> Topology:
    """The places that named groups of a regular expression match in host names. Raises UsageError if it is invalid."""
    try:
        compiled = re.compile(pattern)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"--topology {pattern[:80]!r} is not a regular expression: {error}") from None
    if not 0 < len(compiled.groupindex) <= _MOST_DIMENSIONS:
        example = r"a regular expression with named groups, such as 'rack(?P<rack>\d+)-tray(?P<tray>\d+)'; or a file"
        raise UsageError(f"--topology {pattern[:80]!r} has no named group, and no such file exists", expected=example)
    places: dict[str, dict[str, str]] = {name: {} for name in compiled.groupindex}
    for host in hosts:
        if match := compiled.search(host[:_LONGEST_NAME]):
            for name, value in match.groupdict().items():
                if value is not None:
                    places[name][host] = value
    return Topology({name.replace("_", " "): found for name, found in places.items()})


def from_table(table: Mapping[str, Mapping[str, str]], source: str) -> Topology:
    """The places in a table: ``[switch]`` and below it ``"3" = "node[048-063]"``. Raises UsageError."""
    places: dict[str, dict[str, str]] = {}
    if len(table) > _MOST_DIMENSIONS:
        raise UsageError(f"{source} has {len(table):,} tables", expected=f"at most {_MOST_DIMENSIONS}")
    for dimension, groups in table.items():
        places[dimension] = {}
        for value, hosts in groups.items():
            _place(places[dimension], value, hosts, f"{source}: {dimension}.{value}")
    return Topology(places)


def from_slurm(text: str, source: str) -> Topology:
    """The switches and blocks of Slurm's topology.conf(5) with their nodes, and parent switches. Raises UsageError."""
    places: dict[str, dict[str, str]] = defaultdict(dict)
    above: dict[str, str] = {}
    lines = text.replace("\\\n", "").splitlines()
    for number, line in enumerate(lines[:_MOST_LINES], 1):
        words = {key.lower(): value for key, value in _SLURM.findall(line.partition("#")[0])}
        for key, dimension in (("switchname", "switch"), ("blockname", "block")):
            if key in words and "nodes" in words:
                _place(places[dimension], words[key], words["nodes"], f"{source}:{number}")
        if "switchname" in words and "switches" in words:
            above.update(dict.fromkeys(expand(words["switches"]), words["switchname"]))
    if not places:
        raise UsageError(
            f"{source} does not say where hosts are",
            expected="lines such as SwitchName=leaf3 Nodes=node[048-063], as in Slurm's topology.conf; or TOML",
        )
    of_hosts = places.get("switch", {})
    for level in range(2, 8):  # a tree of more levels is a mistake, or a circle
        of_hosts = {host: above[switch] for host, switch in of_hosts.items() if switch in above}
        if of_hosts:
            places[f"switch of level {level}"] = of_hosts
    return Topology(places)


def _place(places: dict[str, str], value: str, hosts: str, where: str) -> None:
    try:
        names = expand(hosts)
    except UsageError as error:
        raise UsageError(f"{where}: {error.what}", expected=error.expected, hint=error.hint) from None
    for name in names:
        if name in places:
            raise UsageError(f"{where}: {name} is in {places[name]} already", expected="each host once")
        places[name] = value
    if len(places) > MOST_HOSTS:
        raise UsageError(f"{where}: more than {MOST_HOSTS:,} hosts", expected=f"at most {MOST_HOSTS:,}")


def _groups(places: Mapping[str, str]) -> Groups:
    """The hosts by value; none when each value has one host, or all hosts one value."""
    found: dict[str, set[str]] = defaultdict(set)
    for host, value in places.items():
        found[value].add(host)
    if not 1 < len(found) < len(places):
        return {}
    return {value: frozenset(found[value]) for value in sorted(found, key=natural)}


def grid(
    topology: Topology, hosts: Sequence[str], cell: Callable[[str], str]
) -> tuple[str, str, list[str], dict[str, list[str]]] | None:
    """Rows, columns and cells if two dimensions locate each host alone: ("rack", "tray", columns, cells by row)."""
    for rows, columns in itertools.combinations(topology.places, 2):
        by_row, by_column = topology.places[rows], topology.places[columns]
        spots = {(by_row[host], by_column[host]): host for host in hosts if host in by_row and host in by_column}
        if len(spots) == len(hosts) > len({row for row, _ in spots}) > 1:
            names = sorted({column for _, column in spots}, key=natural)
            lines = sorted({row for row, _ in spots}, key=natural)
            table = {row: [cell(spots[row, name]) if (row, name) in spots else "" for name in names] for row in lines}
            return rows, columns, names, table
    return None
