"""Are the hosts of a fleet alike, and did all of them report? Judges what `wheelproof report merge` has read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.fleet import Difference, FleetFacts, by_deviating, by_kinds
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import plural, summarised
from wheel_checks.registry import rules_of

KIND = "fleet"
rule = rules_of(KIND)
_NAMES, _VALUES, _FACTS = 20, 6, 40  # that one line names, one line compares, one finding shows


@rule(
    "MTX201",
    "no host differs from the others",
    Severity.WARNING,
    why="One node with another driver, firmware or torch makes a job of all nodes fail or crawl, and only when the "
    "scheduler picks that node.",
    example="71 hosts have driver 580.95.05, and node-17 has 570.86.15",
    fix="Bring the host in line with the others, or drain it; where the difference is meant, `--ignore MTX201`.",
)
def deviation(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Facts of which few hosts have another value than most, one finding for the same hosts, fewest hosts first.

    Few are at most as many as the square root of how many have the most frequent value.
    """
    for hosts, differences in by_deviating(fleet.differences).items():
        names = sorted(hosts)
        told = summarised([difference.fact for difference in differences], 4)
        yield Finding(
            f"{summarised(names, 4)} {'differs' if len(names) == 1 else 'differ'} from the others: {told}",
            tuple(Evidence(difference.fact, rare_phrase(difference)) for difference in differences[:_FACTS]),
            Fix("Bring it in line with the others, or drain it." if len(names) == 1 else "Bring them in line."),
        )


@rule(
    "MTX207",
    "no host is slower than the others",
    Severity.WARNING,
    why="A job of many nodes runs at the speed of the slowest. Rates are those of `wheelproof smoke --level full`: "
    "copies on a GPU and to it, matrix products, an all-reduce.",
    example="node-17 copies to GPU 3 at 12 GB/s, and the median of 72 hosts is 55",
    fix="Compare its slots, cables, clocks and neighbours with those of another node, or drain it.",
)
def slower(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Hosts of which a rate is below nine tenths of the median of all, one finding for each host."""
    if not fleet.has_rates:
        hint = "`wheelproof smoke --level full` measures rates"
        need(Unavailable("no rate was measured on three hosts or more", hint))
    slow = fleet.slow_rates
    for host in dict.fromkeys(each.host for each in slow):
        own = [each for each in slow if each.host == host]
        first = own[0]
        share = f"{100 * first.rate / first.median:.0f} % of the median of {plural(first.hosts, 'host')}"
        more = f" (and {len(own) - 1} more)" if len(own) > 1 else ""
        evidence = tuple(Evidence(e.fact, f"{e.rate:.3g}, the median is {e.median:.3g}") for e in own[:_FACTS])
        yield Finding(f"{host} is slower than the others: {first.fact} at {share}{more}", evidence)


@rule(
    "MTX202",
    "all hosts are of one kind",
    Severity.NOTE,
    why="What is meant to be one pool of equal machines is often two, such as old and new racks; a job that spans both "
    "runs at the speed of the slower, and a wheel may fit only one.",
    example="40 hosts have 8 x NVIDIA H100, 32 hosts 8 x NVIDIA H200",
    fix="Nothing, when this is meant: merge the reports of each kind by themselves. Otherwise update the older ones.",
)
def kinds(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Facts with more than one value that many hosts have, one finding for the same division of the hosts."""
    for differences in by_kinds(fleet.differences):
        count = len(differences[0].common)
        told = summarised([difference.fact for difference in differences], 4)
        yield Finding(
            f"there are {count} kinds of hosts, which differ in {told}",
            tuple(Evidence(difference.fact, counts_phrase(difference.common)) for difference in differences[:_FACTS]),
        )


@rule(
    "MTX203",
    "every expected host reported",
    why="The host that is broken most is the one that cannot even run the doctor: without a list of names nobody "
    "misses it.",
    example="73 hosts were expected, and node-9 gave no report",
    fix="Look at the host itself: is it up, can the scheduler start anything there, is wheelproof installed?",
)
def missing(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Which of the expected hosts gave no report (undecided), and which gave one that nobody expected (a warning)."""
    if not fleet.expected:
        need(Unavailable("nobody said which hosts are expected", "--expect-hosts names them"))
    if absent := fleet.missing:
        yield Finding(
            f"{len(absent)} of {len(fleet.expected)} expected hosts gave no report: {summarised(absent, 8)}",
            (Evidence("without a report", summarised(absent, 200)),),
            Fix("Look at the host itself, or at the log of the job that should have run there."),
            undecided=True,
        )
    if strange := fleet.unexpected:
        yield Finding(
            f"{plural(len(strange), 'host')} gave a report and {'was' if len(strange) == 1 else 'were'} not expected: "
            f"{summarised(strange, 8)}",
            fix=Fix("Compare the names: `wheelproof doctor --host NAME` sets them, or else the file's name counts."),
            severity=Severity.WARNING,
        )


@rule(
    "MTX204",
    "every input is a report",
    why="A report that was cut off or cannot be read is a host that nobody has looked at.",
    example="node-9.json ends in the middle: its node lost power while it wrote",
    fix="Make the report again: `wheelproof doctor --format json --output FILE`.",
)
def unreadable(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Inputs that could not be read; undecided."""
    for input_ in fleet.unreadable:
        yield Finding(f"{input_.source}: {input_.reason}", undecided=True)


@rule(
    "MTX205",
    "no host reported twice",
    Severity.WARNING,
    why="Two reports of one command under one name are an old and a new one, or two hosts of the same name: then one "
    "of them is not looked at.",
    example="rack1/node1.json and rack2/node1.json, and neither says which host it is",
    fix="Remove the old reports, or name the hosts: `wheelproof doctor --host NAME`.",
)
def repeated(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Reports that gave way to a newer one of the same host and command."""
    newer = {(host.name, r.source.command): r.source for host in fleet.hosts for r in host.reports}
    for name, report in fleet.repeated:
        kept = newer.get((name, report.command))  # a host of which only an earlier merge told may have none
        counts = (Evidence("counts", kept.started, kept.source),) if kept else ()
        yield Finding(
            f"{name} has several reports of `wheelproof {report.command}`, and only the newest counts",
            (*counts, Evidence("does not count", report.started, report.source)),
        )


@rule(
    "MTX206",
    "every report was taken in whole",
    why="A merge keeps a bounded number of findings and facts of each report. What it leaves out must not look as if "
    "it were not there.",
    example="a folder of 7,000 wheels was verified on every node, and each report has a fact for each of them",
    fix="Make smaller reports: of fewer subjects, or of fewer rules (`--select`).",
)
def taken_in_whole(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """What was left out of a report. It is as grave as the gravest of it can be; undecided when nobody knows."""
    for host in fleet.hosts:
        for report in host.reports:
            for left_out in report.left_out:
                yield Finding(
                    f"{host.name}: the report of `wheelproof {report.source.command}` has {left_out.what}",
                    (Evidence("report", report.source.started, report.source.source),),
                    severity=left_out.severity,
                    undecided=left_out.severity is None,
                )


def counts_phrase(by_value: Mapping[str, Sequence[str]]) -> str:
    """``40 hosts 8 x NVIDIA H100; 32 hosts 8 x NVIDIA H200``."""
    return "; ".join(_few(f"{plural(len(names), 'host')} {value}" for value, names in by_value.items()))


def rare_phrase(difference: Difference) -> str:
    """``node-17: 570.86.15; 71 hosts 580.95.05``: the hosts that deviate, then what the others have."""
    rare = _few(f"{summarised(names, _NAMES)}: {value}" for value, names in difference.rare.items())
    return "; ".join([*rare, counts_phrase(difference.common)])


def _few(parts: Iterable[str]) -> Iterator[str]:
    shown = list(parts)
    yield from shown[:_VALUES]
    if len(shown) > _VALUES:
        yield f"{len(shown) - _VALUES:,} more values"
