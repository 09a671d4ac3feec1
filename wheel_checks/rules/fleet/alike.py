"""Are the hosts of a fleet alike? Judges what `wheelproof report merge` has read."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.fleet.host_list import folded, natural
from wheel_checks.facts.fleet.hosts import Difference, FleetFacts, by_deviating, by_kinds
from wheel_checks.facts.fleet.rates import FEW_HOSTS, FEW_RATES, SlowGroup, SlowRate
from wheel_checks.facts.fleet.report import ABSENT
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rules_of
from wheel_checks.rules.fleet import KIND

rule = rules_of(KIND)
_PARTS, _VALUES, _FACTS = 6, 6, 40  # of a set of hosts, that one line compares, that one finding shows
_MOST_GROUPS, _MOST_SLOW = 1000, 200  # sets of hosts that deviate, and slow hosts, with a finding each


@rule(
    "MTX201",
    "no host differs from the others",
    Severity.WARNING,
    why="One node with another driver, firmware or torch makes a job across all nodes fail or slow down, and only when "
    "the scheduler selects that node.",
    example="71 hosts have driver 580.95.05, and node-17 has 570.86.15",
    fix="Bring the host in line with the others, or drain it; use `--ignore MTX201` where the difference is intended.",
)
def deviation(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Facts of which few hosts have another value than most, one finding for the same hosts, fewest hosts first.

    Few are at most as many as the square root of how many have the most frequent value; of whole racks, switches or
    other groups of the topology likewise.
    """
    groups = list(by_deviating(fleet.differences).items())
    for hosts, differences in groups[:_MOST_GROUPS]:
        who = fleet.topology.phrase(hosts, differences[0].compared)
        facts = summarised([difference.fact for difference in differences], 4)
        yield Finding(
            f"{who} {'differs' if len(hosts) == 1 else 'differ'} from the others: {facts}",
            tuple(Evidence(difference.fact, rare_phrase(difference)) for difference in differences[:_FACTS]),
            Fix("Bring it in line with the others, or drain it." if len(hosts) == 1 else "Bring them in line."),
        )
    if rest := groups[_MOST_GROUPS:]:
        names = sorted({name for hosts, _ in rest for name in hosts}, key=natural)
        yield Finding(f"{plural(len(rest), 'more set')} of hosts differ from the others: {folded(names, _PARTS)}")


@rule(
    "MTX207",
    "no host is slower than the others",
    Severity.WARNING,
    why="A job across many nodes runs at the speed of the slowest. `wheelproof smoke --level full` measures the rates: "
    "copies on a GPU and to it, matrix products, an all-reduce. Each rate is compared with those of the same product, "
    "and is too low when it is more than six standard deviations below the median, and further from it than healthy "
    "GPUs are from each other: 0.5 % for copies, 8 % for matrix products in bfloat16.",
    example="GPU 3 of node-17 copies at 3.92 TB/s, but the median of 72 hosts is 4.26",
    fix="Compare its slots, cables, clocks and other jobs with those of another node, or drain it.",
)
def slower(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Places of which nearly all hosts are slow, then hosts of which a rate is too low, one finding for each."""
    rates = fleet.rates
    if not rates.compared:
        hint = "`wheelproof smoke --level full` measures rates"
        need(Unavailable(f"no rate was measured on {FEW_HOSTS} hosts, or {FEW_RATES} GPUs, of the same kind", hint))
    explained: set[tuple[str, str]] = set()
    every = frozenset(host.name for host in fleet.hosts)
    for hosts, groups in _by_hosts(rates.groups):
        explained |= {(group.usual.kind, host) for group in groups for host in hosts}
        what = ", ".join(f"{group.usual.kind} at {_share(group.rate, group.usual.median)}" for group in groups)
        yield Finding(
            f"{fleet.topology.phrase(hosts, every)} are slower than the others: {what} of the median of "
            f"{plural(groups[0].usual.hosts, 'other host')}",
            tuple(map(_noise, groups)),
        )
    slow: dict[str, list[SlowRate]] = defaultdict(list)
    for one in rates.slow:
        if (_kind(one.fact), one.host) not in explained:
            slow[one.host].append(one)
    for host, own in list(slow.items())[:_MOST_SLOW]:
        first_slow = own[0]
        share = f"{_share(first_slow.rate, first_slow.median)} of the median of {plural(first_slow.hosts, 'host')}"
        more = f" (and {len(own) - 1} more)" if len(own) > 1 else ""
        evidence = tuple(
            Evidence(e.fact, f"{e.rate:.3g}, the median is {e.median:.3g}, {e.far:.0f} standard deviations away")
            for e in own[:_FACTS]
        )
        yield Finding(f"{host} is slower than the others: {first_slow.fact} at {share}{more}", evidence)
    if rest := list(slow)[_MOST_SLOW:]:
        yield Finding(f"{plural(len(rest), 'more host')} are slower than the others: {folded(rest, _PARTS)}")


@rule(
    "MTX208",
    "hosts in the same rack or group are in one NVLink domain",
    Severity.WARNING,
    why="GPUs reach each other over NVLink only within one domain: one cluster UUID and one clique. A tray that its "
    "cables or its fabric manager put into another domain is slow for every job that relies on its rack.",
    example="17 hosts of rack 3 are in one NVLink domain, but rack3-tray07 is in another",
    fix="Compare its NVLink cables, its fabric state and its firmware with those of its neighbours.",
)
def divided(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Hosts that are not in the NVLink domain in which most hosts of their rack are.

    Only a dimension of the names counts whose groups mostly are one domain each.
    """
    if not fleet.domains:
        need(Unavailable("no host reports its NVLink domain", "GPUs of GB200 and later NVL72 racks have one"))
    found: dict[str, tuple[str, str, int]] = {}
    for dimension, groups in fleet.named_places.groups:
        for value, most, others in _divided(groups, fleet.known_domains):
            for host in others:
                found.setdefault(host, (dimension, value, most))
    for (dimension, value, most), hosts in _by_value(found).items():
        domains = Counter(fleet.known_domains[host] for host in hosts)
        one = len(hosts) == 1
        yield Finding(
            f"{folded(hosts, _PARTS)} {'is' if one else 'are'} not in the NVLink domain of the other {most} hosts of "
            f"{dimension} {value}",
            tuple(Evidence(f"the domain of {plural(count, 'host')}", name) for name, count in domains.items())[
                :_VALUES
            ],
        )


@rule(
    "MTX202",
    "all hosts are of the same kind",
    Severity.NOTE,
    why="A pool of hosts that should be equal often contains two kinds, such as old and new racks; a job across both "
    "runs at the speed of the slower, and a wheel may support only one.",
    example="40 hosts have 8 x NVIDIA H100, 32 hosts 8 x NVIDIA H200",
    fix="No action is needed if this is intended: merge the reports of each kind separately. Otherwise update the "
    "older hosts.",
)
def kinds(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Facts with more than one value that many hosts have, one finding for the same division of the hosts."""
    for differences in by_kinds(fleet.differences):
        count = len(differences[0].common)
        facts = summarised([difference.fact for difference in differences], 4)
        shown = differences[:_FACTS]
        yield Finding(
            f"the hosts are of {count} kinds, which differ in {facts}",
            tuple(Evidence(difference.fact, counts_phrase(difference.common)) for difference in shown),
        )


def _by_hosts(groups: Sequence[SlowGroup]) -> list[tuple[frozenset[str], list[SlowGroup]]]:
    found: dict[frozenset[str], list[SlowGroup]] = defaultdict(list)
    for group in groups:
        found[group.hosts].append(group)
    return list(found.items())


def _kind(fact: str) -> str:
    """``copy`` of ``smoke: GPU 3 copy``."""
    words = fact.partition(": ")[2].split(" ", 2)
    return words[2] if words[0] == "GPU" and len(words) == 3 else " ".join(words)


def _share(rate: float, median: float) -> str:
    return f"{100 * rate / median:.0f} %"


def _noise(group: SlowGroup) -> Evidence:
    usual = group.usual
    return Evidence(
        f"{usual.kind}{f' of {usual.product}' if usual.product else ''}",
        f"{group.rate:.3g}, the median of the others is {usual.median:.3g}, their standard deviation "
        f"{100 * usual.deviation:.1f} %",
    )


def _divided(groups: Mapping[str, frozenset[str]], domains: Mapping[str, str]) -> Iterator[tuple[str, int, list[str]]]:
    """The values of groups in which a host is not in the domain of most, with how many these are, and the others."""
    known = {value: [host for host in sorted(hosts, key=natural) if host in domains] for value, hosts in groups.items()}
    known = {value: hosts for value, hosts in known.items() if hosts}
    usual = {value: Counter(domains[host] for host in hosts).most_common(1)[0] for value, hosts in known.items()}
    whole = {
        value for value, (domain, count) in usual.items() if domain != ABSENT and 2 * count > len(known[value]) > 2
    }
    if 2 * len(whole) <= len(known) or len({usual[value][0] for value in whole}) < len(whole):
        return  # a tray of each rack, or a pod of many racks: it is no domain
    for value in known:
        domain, count = usual[value]
        if value in whole and (others := [host for host in known[value] if domains[host] != domain]):
            yield value, count, others


def _by_value(found: Mapping[str, tuple[str, str, int]]) -> dict[tuple[str, str, int], list[str]]:
    hosts: dict[tuple[str, str, int], list[str]] = defaultdict(list)
    for host, where in found.items():
        hosts[where].append(host)
    return hosts


def counts_phrase(by_value: Mapping[str, Sequence[str]]) -> str:
    """``40 hosts 8 x NVIDIA H100; 32 hosts 8 x NVIDIA H200``."""
    return "; ".join(_few(by_value, lambda value: f"{plural(len(by_value[value]), 'host')} {value}"))


def rare_phrase(difference: Difference) -> str:
    """``node-17: 570.86.15; 71 hosts 580.95.05``: the hosts that deviate, then what the others have."""
    rare = _few(difference.rare, lambda value: f"{folded(difference.rare[value], _PARTS)}: {value}")
    return "; ".join([*rare, counts_phrase(difference.common)])


def _few(values: Mapping[str, Sequence[str]], phrase: Callable[[str], str]) -> Iterator[str]:
    yield from map(phrase, islice(values, _VALUES))
    if len(values) > _VALUES:
        yield f"{len(values) - _VALUES:,} more values"
