"""The requirements for nodes in ``wheelproof report merge --expect FILE``, and the comparison with reports.

Compared are the texts of :mod:`wheel_checks.facts.host.comparable`. A fact missing from a report is undecided, never
met.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import partial
from typing import Annotated, NamedTuple

from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from wheel_checks.decode import Check, DecodeError, Fault, Filled, Key, Made
from wheel_checks.errors import UsageError
from wheel_checks.facts.fleet.host_list import expand
from wheel_checks.facts.fleet.rates import ALL_REDUCE, rates_in
from wheel_checks.facts.fleet.report import ABSENT, DOCTOR, GPUS, Host
from wheel_checks.facts.gpu.expected import HostExpectation, SeenGpu, mismatch, parse_host_expectation
from wheel_checks.formats.documents import read_toml
from wheel_checks.parsing import version_or_none

_PIECE = re.compile(r"([0-9]{1,6}) x (.*?)(?:, (?=[0-9]{1,6} x )|$)")
_SIZE = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?) ?([KMGT]?)(?:i?B)?", re.IGNORECASE)
_PORTS = re.compile(r"(?:([0-9]{1,4}) ?x ?)?([0-9]{1,5})(?: ?Gb/s)?")
_PCIE = re.compile(r"(?:gen(?:eration)? ?)?([1-9]) ?x ?([0-9]{1,2})", re.IGNORECASE)
_MOST_GPUS = 1024
_MAKERS = {"NVIDIA": "cuda", "AMD": "rocm", "Intel": "xpu"}


class Unmet(NamedTuple):
    """A requirement that a host does not meet, or may not: ``has`` is the observed value, None if unknown."""

    what: str
    expected: str
    has: str | None


def _versions(text: str) -> SpecifierSet:
    try:
        return SpecifierSet(text if re.match(r"\s*[<>=!~]", text) else f"=={Version(text)}")
    except (InvalidSpecifier, InvalidVersion):
        raise UsageError(
            f"{text[:80]!r} is not a version condition", expected="a form such as >=580 or 580.159.04"
        ) from None


def _gpus(text: str) -> HostExpectation:
    try:
        return parse_host_expectation(text)
    except UsageError as error:
        raise UsageError(error.what.removeprefix("--expect "), expected=error.expected) from None


def _bytes(text: str) -> int:
    match = _SIZE.fullmatch(text)
    if not match:
        raise UsageError(f"{text[:80]!r} is not a size", expected="one such as 64K or 900 GiB")
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " "))


def _ports(text: str) -> tuple[int, int]:
    match = _PORTS.fullmatch(text)
    if not match:
        raise UsageError(f"{text[:80]!r} is not a list of ports", expected="ports and their Gb/s, such as 4 x 400")
    return int(match[1] or 1), int(match[2])


def _pcie(text: str) -> tuple[int, int]:
    match = _PCIE.fullmatch(text)
    if not match:
        raise UsageError(f"{text[:80]!r} is not a PCIe link", expected="generation and lanes, such as 5 x 16")
    return int(match[1]), int(match[2])


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{text[:80]!r} is not a regular expression: {error}", expected="one such as rack.*") from None


def _hosts(text: str) -> frozenset[str]:
    return frozenset(expand(text))


Versions = Annotated[SpecifierSet, Made(_versions)]
Positive = Annotated[float, Check(lambda value: 0 < value < 1e30, "a number above 0")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """One table of the file: its hosts, and the requirements for each of them; None if not required.

    ``memory`` and ``page_size`` in bytes, ``nvlink_speed`` in GB/s, ``power_limit`` in watts, ``infiniband`` (ports,
    Gb/s), ``pcie`` (generation, lanes), ``rates`` of each GPU in bytes or operations a second. Memory, speeds, links of
    PCIe and InfiniBand and rates are minimums, and a driver's versions a specifier; the others are exact.
    """

    hosts: Annotated[frozenset[str] | None, Made(_hosts)] = None
    pattern: Annotated[re.Pattern[str] | None, Made(_pattern)] = None
    gpus: Annotated[HostExpectation | None, Made(_gpus)] = None
    driver: Versions | None = None
    cuda: Versions | None = None
    torch: Versions | None = None
    machine: Filled | None = None
    page_size: Annotated[int | None, Made(_bytes), Key("page-size")] = None
    memory: Annotated[int | None, Made(_bytes)] = None
    power_limit: Annotated[Positive | None, Key("power-limit")] = None
    nvlinks: Annotated[int | None, Check(lambda value: value is None or 0 < value < 1000, "a number of links")] = None
    nvlink_speed: Annotated[Positive | None, Key("nvlink-speed")] = None
    pcie: Annotated[tuple[int, int] | None, Made(_pcie)] = None
    infiniband: Annotated[tuple[int, int] | None, Made(_ports)] = None
    facts: Mapping[str, str] = field(default_factory=dict)
    rates: Mapping[str, Positive] = field(default_factory=dict)

    def concerns(self, host: str) -> bool:
        """Whether the table is about this host: by its name, its pattern, or both; without either about every one."""
        named = self.hosts is None or host in self.hosts
        return named and (self.pattern is None or bool(self.pattern.fullmatch(host[:253])))

    @property
    def who(self) -> str:
        """Which hosts it is about, in words."""
        return f"pattern {self.pattern.pattern[:80]!r}" if self.pattern else "the hosts that it applies to"


@dataclass(frozen=True, slots=True)
class _File:
    nodes: tuple[Nodes, ...] = ()


def read_nodes(data: bytes, source: str) -> tuple[Nodes, ...]:
    """The tables of a file. Raises FormatError with every fault and its line."""

    def checked(file: _File) -> tuple[Nodes, ...]:
        if not file.nodes:
            raise DecodeError([Fault(("nodes",), "is missing", "at least one table [[nodes]]")])
        return file.nodes

    return read_toml(data, source, _File, checked)


def unmet(host: Host, tables: Sequence[Nodes]) -> Iterator[Unmet]:
    """The requirements of all tables for this host that it does not meet, or may not meet."""
    facts = next((report.facts for report in host.reports if report.source.command == DOCTOR and report.facts), {})
    for table in tables:
        if table.concerns(host.name):
            yield from _of_doctor(facts, table)
            yield from _of_rates(host, facts.get(GPUS) or "", table.rates)


def unmet_by_hosts(hosts: Sequence[Host], tables: Sequence[Nodes]) -> dict[Unmet, list[str]]:
    """The hosts by requirement that they do not meet, or may not meet, in their order."""
    found: dict[Unmet, list[str]] = defaultdict(list)
    for host in hosts:
        for one in dict.fromkeys(unmet(host, tables)):
            found[one].append(host.name)
    return found


def _of_doctor(facts: Mapping[str, str | None], table: Nodes) -> Iterator[Unmet]:
    if table.gpus is not None:
        yield from _of_gpus(facts.get(GPUS), table.gpus)
    versions = (("driver", table.driver), ("CUDA of the driver", table.cuda), ("torch", table.torch))
    for fact, specifier in versions:
        if specifier is not None:
            yield from _each(fact, str(specifier), facts.get(fact), partial(_is_version, wanted=specifier))
    for name, expected, fact, meets in _simple(table):
        if expected:
            yield from _each(name, expected, facts.get(fact), meets)
    if table.infiniband is not None:
        yield from _of_ports(facts.get("InfiniBand"), *table.infiniband)
    for fact, glob in table.facts.items():
        has = facts.get(fact, ABSENT if fact.startswith("variable ") else None)
        if has is None or not fnmatchcase(has, glob):
            yield Unmet(fact, glob, has)


def _simple(table: Nodes) -> Iterator[tuple[str, str, str, Callable[[str], bool | None]]]:
    """The requirement, the expected value in words ("" for nothing), the fact that decides, and whether it is met."""
    yield "machine", table.machine or "", "machine", lambda text: text == table.machine
    yield "page size", _kib(table.page_size), "page size", lambda text: _size_in(text) == table.page_size
    yield "memory", _kib(table.memory, "at least "), "memory", lambda text: _least(_size_in(text), table.memory)
    yield "power limit", _text("{:g} W", table.power_limit), "power limit", lambda t: _leading(t) == table.power_limit
    yield "NVLinks", _text("{} up", table.nvlinks), "NVLinks", lambda text: _leading(text) == table.nvlinks
    speed = _text("at least {:g} GB/s", table.nvlink_speed)
    yield "NVLink speed", speed, "NVLinks", lambda text: _least(_leading(text.partition(" at ")[2]), table.nvlink_speed)
    link = _text("at least generation {0[0]} x {0[1]}", table.pcie)
    yield "PCIe", link, "PCIe", lambda text: _is_pcie(text, table.pcie)


def _each(what: str, expected: str, has: str | None, meets: Callable[[str], bool | None]) -> Iterator[Unmet]:
    """A requirement for every GPU; a failing GPU takes precedence over an unknown one."""
    pieces = [None] if has is None else [piece for _, piece in _pieces(has)]
    found = [None if piece in {None, "unknown"} else meets(piece) for piece in pieces if piece is None or piece]
    if False in found or None in found or not found:
        yield Unmet(what, expected, has if False in found else None)


def _pieces(text: str) -> list[tuple[int, str]]:
    """``3 x on, 1 x off`` as (3, "on"), (1, "off"); another text as it is, once."""
    found = [(int(match[1]), match[2]) for match in _PIECE.finditer(text)]
    return found if found and re.match(r"[0-9]{1,6} x ", text) else [(1, text)]


def _of_gpus(has: str | None, wanted: HostExpectation) -> Iterator[Unmet]:
    unknown = has is None or (has == ABSENT and wanted.accelerator in {"rocm", "xpu"})  # only NVIDIA's are reported
    seen: list[SeenGpu] = []
    for count, name in [] if has is None or has == ABSENT else _pieces(has):
        maker = next((kind for maker, kind in _MAKERS.items() if name.startswith(maker)), "cuda" if ":" in name else "")
        seen += [SeenGpu(name, accelerator=maker)] * min(count, _MOST_GPUS)
    if wanted.accelerator == "cpu":
        if has != ABSENT:
            yield Unmet("GPUs", "none", has)
    elif not unknown and mismatch(wanted, seen):
        yield Unmet("GPUs", str(wanted), has)
    elif unknown or any(wanted.accepts(gpu) is None for gpu in seen):
        yield Unmet("GPUs", str(wanted), None)


def _of_ports(has: str | None, count: int, rate: int) -> Iterator[Unmet]:
    pieces = _pieces(has or "")
    fast = sum(number for number, text in pieces if (speed := _leading(text)) and "Gb/s" in text and speed >= rate)
    if has is None or fast < count:
        unknown = any("unknown" in text for _, text in pieces)
        yield Unmet("InfiniBand", f"at least {count} x {rate} Gb/s", None if unknown else has)


def _of_rates(host: Host, gpus: str, wanted: Mapping[str, float]) -> Iterator[Unmet]:
    """Rates that are too low; unknown if fewer GPUs were measured than exist."""
    count = sum(number for number, _ in _pieces(gpus))
    measured: dict[str, list[float]] = defaultdict(list)
    for report in host.reports:
        for one in rates_in(host.name, report.source.command, report.facts or {}):
            measured[one.kind].append(one.rate)
    for kind, least in wanted.items():
        found = measured[kind]
        if found and min(found) < least:
            yield Unmet(f"rate of {kind}", f"at least {least:.4g}", f"{min(found):.4g}")
        elif len(found) < (1 if kind == ALL_REDUCE else count):
            yield Unmet(f"rate of {kind}", f"at least {least:.4g}", None)


def _is_version(text: str, wanted: SpecifierSet) -> bool | None:
    if text == ABSENT:
        return False
    version = version_or_none(text)
    return wanted.contains(version, prereleases=True) if version else None


def _is_pcie(text: str, wanted: tuple[int, int] | None) -> bool | None:
    match = re.match(r"generation (\d{1,2}) x (\d{1,3})", text)
    return int(match[1]) >= wanted[0] and int(match[2]) >= wanted[1] if match and wanted else None


def _leading(text: str) -> float | None:
    match = re.match(r"[0-9]{1,9}(?:\.[0-9]{1,6})?", text)
    return float(match[0]) if match else None


def _size_in(text: str) -> int | None:
    match = _SIZE.fullmatch(text)
    return int(float(match[1]) * 1024 ** " KMGT".index(match[2].upper() or " ")) if match else None


def _least(value: float | None, least: float | None) -> bool | None:
    return None if value is None or least is None else value >= least


def _kib(size: int | None, before: str = "") -> str:
    if size is None:
        return ""
    large = size >= 1 << 30
    return f"{before}{size / (1 << (30 if large else 10)):g} {'GiB' if large else 'KiB'}"


def _text(form: str, value: object) -> str:
    return "" if value is None else form.format(value)
