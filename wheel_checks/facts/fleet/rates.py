"""Rates that hosts have measured, and which of them are too low: robust z-scores among GPUs of one product.

z is the distance from the median in standard deviations. The standard deviation is pooled from that of the fleet
(1.4826 times the median absolute deviation, which a few slow GPUs do not change; Rousseeuw and Croux 1993) and from
that of healthy GPUs in the table ``rate_noise``, which has the weight of as many values as it rests on. A rate is too
low when z is above ``FAR`` and the rate is further from the median than healthy GPUs are from each other.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.data import load
from wheel_checks.facts.fleet.topology import MOSTLY, Topology

RATE = "rate of "  # what the name of a fact starts with whose text is a number, in bytes or operations a second
ALL_REDUCE = "all-reduce"  # the one rate of a host, and not of a GPU
FEW_HOSTS, FEW_RATES = 3, 6  # with so many hosts, or rates of GPUs on fewer, rates can be compared
FAR, FAR_GROUP = 6.0, 3.0  # standard deviations: of one rate, and of the median of a group of hosts
_LEAST_NOISE = 0.002  # of the rate: less is not measured
_NORMAL = 1.4826  # the standard deviation of normal values, in median absolute deviations
_LEAST_GROUP = 3  # hosts


class Measured(NamedTuple):
    """A rate (bytes or operations a second) of a ``host``: ``fact`` is "GPU 3 copy", ``kind`` "copy"."""

    host: str
    fact: str
    kind: str
    product: str
    rate: float


@dataclass(frozen=True, slots=True)
class Usual:
    """What is usual for rates of a ``kind`` of a ``product``: the median, and the standard deviation relative to it.

    ``spread`` is how much healthy GPUs differ, relative to the highest; ``hosts`` have ``values`` rates.
    """

    kind: str
    product: str
    median: float
    deviation: float
    spread: float
    hosts: int
    values: int

    def far(self, rate: float) -> float:
        """How many standard deviations a rate is below the median."""
        return (self.median - rate) / (self.median * self.deviation)

    def is_low(self, rate: float) -> bool:
        """Whether a single rate is too low."""
        return self.far(rate) > FAR and rate < self.median * (1 - self.spread)


@dataclass(frozen=True, slots=True)
class SlowRate:
    """A rate (bytes or operations a second) of a ``host`` that is too low, and the median of all such rates."""

    fact: str
    host: str
    rate: float
    median: float
    hosts: int
    far: float


@dataclass(frozen=True, slots=True)
class SlowGroup:
    """Hosts of one place that are nearly all slower than the others: their median ``rate``, and what is usual there."""

    hosts: frozenset[str]
    rate: float
    usual: Usual


@dataclass(frozen=True, slots=True)
class Rates:
    """The rates of a fleet, judged. ``compared`` are the kinds and products of which enough hosts have one."""

    compared: tuple[Usual, ...] = ()
    slow: tuple[SlowRate, ...] = ()
    groups: tuple[SlowGroup, ...] = ()


def is_rate(fact: str) -> bool:
    """Whether the fact with this name ("smoke: rate of GPU 3 copy") is a rate."""
    return fact.startswith(RATE) or fact.partition(": ")[2].startswith(RATE)


def rates_in(host: str, command: str, facts: Mapping[str, str | None]) -> Iterator[Measured]:
    """The rates among the facts of a report; the facts say which GPUs there are."""
    gpus = (facts.get("GPUs") or "").split(", ")
    for name, text in facts.items():
        if is_rate(name) and (rate := _number(text or "")):
            fact = name.removeprefix(RATE)
            words = fact.split(" ", 2)
            if words[0] == "GPU" and len(words) == 3 and words[1].isdecimal():
                index = int(words[1][:6])
                product = gpus[index] if index < len(gpus) else gpus[0]
                yield Measured(host, f"{command}: {fact}", words[2], product, rate)
            else:
                counts = ", ".join(f"{count} x {name}" for name, count in Counter(gpus).items() if name)
                yield Measured(host, f"{command}: {fact}", fact, counts, rate)


def judge(measured: Iterable[Measured], topology: Topology) -> Rates:
    """Which rates are too low, the slowest first, and which places are slow as a whole."""
    pools: dict[tuple[str, str], list[Measured]] = defaultdict(list)
    for one in measured:
        pools[(one.kind, one.product)].append(one)
    compared, slow, groups = [], [], []
    for (kind, product), pool in pools.items():
        hosts = frozenset(one.host for one in pool)
        if len(hosts) < FEW_HOSTS and len(pool) < FEW_RATES:
            continue
        usual = _usual(kind, product, [one.rate for one in pool], len(hosts))
        compared.append(usual)
        slow += [_slow(one, usual) for one in pool if usual.is_low(one.rate)]
        groups += _slow_groups(pool, usual, topology)
    slow.sort(key=lambda one: one.rate / one.median)
    return Rates(tuple(compared), tuple(slow), tuple(sorted(groups, key=lambda one: one.rate / one.usual.median)))


def noise_of(kind: str) -> tuple[float, float]:
    """The standard deviation and the spread of healthy GPUs, relative to the rate; as of matrix products for a kind
    that the table does not have.
    """
    rows = {row["name"]: row for row in load("rate_noise")["rate"]}
    row = rows.get(kind, rows["bf16"])
    return float(row["sd"]), float(row["spread"])


def _usual(kind: str, product: str, rates: Sequence[float], hosts: int) -> Usual:
    median = statistics.median(rates)
    own = _NORMAL * statistics.median(abs(rate - median) for rate in rates) / median
    known, spread = noise_of(kind)
    prior = int(load("rate_noise")["gpus"])
    pooled = math.sqrt((prior * known**2 + len(rates) * own**2) / (prior + len(rates)))
    return Usual(kind, product, median, max(pooled, _LEAST_NOISE), spread, hosts, len(rates))


def _slow(one: Measured, usual: Usual) -> SlowRate:
    return SlowRate(one.fact, one.host, one.rate, usual.median, usual.hosts, usual.far(one.rate))


def _slow_groups(pool: Sequence[Measured], usual: Usual, topology: Topology) -> list[SlowGroup]:
    """The largest groups of hosts that are slow as a whole; none of them within another."""
    by_host: dict[str, list[float]] = defaultdict(list)
    for one in pool:
        by_host[one.host].append(one.rate)
    medians = {host: statistics.median(rates) for host, rates in by_host.items()}
    every = frozenset(medians)
    sets = {members & every for _, groups in topology.groups for members in groups.values()}
    found: list[SlowGroup] = []
    for members in sorted(sets, key=len, reverse=True):
        if not _LEAST_GROUP <= len(members) <= len(medians) // 2 or any(members <= one.hosts for one in found):
            continue
        rate = statistics.median(medians[host] for host in members)
        if rate > usual.median * (1 - usual.spread / 2):
            continue
        rest = [medians[host] for host in every - members]
        others = _usual(usual.kind, usual.product, rest, len(rest))
        low = sum(medians[host] < (rate + others.median) / 2 for host in members)
        if others.far(rate) > FAR_GROUP and low >= MOSTLY * len(members):
            found.append(SlowGroup(members, rate, others))
    return found


def _number(text: str) -> float:
    """The rate that ``text`` says; 0 for anything else, as another machine may write it."""
    try:
        rate = float(text)
    except ValueError:
        return 0.0
    return rate if 0 < rate < math.inf else 0.0
