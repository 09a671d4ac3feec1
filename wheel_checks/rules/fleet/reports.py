"""Did every host of a fleet report, once, and was all of it taken in?"""

from collections.abc import Iterable

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.fleet.host_list import folded
from wheel_checks.facts.fleet.hosts import FleetFacts
from wheel_checks.facts.fleet.nodes import unmet_by_hosts
from wheel_checks.model import Evidence, Finding, Fix, Severity, Unavailable, need
from wheel_checks.phrases import plural
from wheel_checks.registry import rules_of
from wheel_checks.rules.fleet import KIND

rule = rules_of(KIND)
_PARTS, _EVIDENCE_PARTS = 8, 200  # of a set of hosts


@rule(
    "MTX203",
    "every expected host reported",
    why="The most broken host is the one that cannot even run the doctor: without a list of names it is not missed.",
    example="73 hosts were expected, but node-9 gave no report",
    fix="Check the host itself: is it up, can the scheduler start jobs on it, is wheelproof installed?",
)
def missing(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Which of the expected hosts gave no report (undecided), and which gave one that no one expected (a warning)."""
    if not fleet.expected:
        need(Unavailable("no list of expected hosts was given", "--expect-hosts lists them"))
    if absent := fleet.missing:
        yield Finding(
            f"{len(absent)} of {len(fleet.expected)} expected hosts gave no report: {folded(absent, _PARTS)}",
            (Evidence("without a report", folded(absent, _EVIDENCE_PARTS)),),
            Fix("Check the host itself, or the log of the job that should have run on it."),
            undecided=True,
        )
    if strange := fleet.unexpected:
        yield Finding(
            f"{plural(len(strange), 'host')} gave a report but {'was' if len(strange) == 1 else 'were'} not expected: "
            f"{folded(strange, _PARTS)}",
            fix=Fix(
                "Compare the names: `wheelproof doctor --host NAME` sets a report's host name; the default is the file "
                "name."
            ),
            severity=Severity.WARNING,
        )


@rule(
    "MTX209",
    "every node meets the expectations",
    why="A fault that only a few nodes have differs from the others; a fault that all nodes share does not. `--expect "
    "FILE` states what a node must have: its GPUs, its driver, its links, its rates.",
    example="72 nodes should have 18 NVLinks up on each of 4 GB200, but rack3-tray07 has 17 on one of them",
    fix="Correct the node, or drain it; if the file is out of date, update the file.",
)
def not_as_expected(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """What nodes do not meet, one finding for the same shortfall; undecided where their reports do not say."""
    if not fleet.tables:
        need(Unavailable("no expectations of nodes were given", "--expect FILE gives them"))
    names = [host.name for host in fleet.hosts]
    for (what, expected, has), hosts in unmet_by_hosts(fleet.hosts, fleet.tables).items():
        who = f"{fleet.topology.phrase(hosts, names)}: {what}"
        if has is None:
            hint = Fix(
                f"Make a report that includes it: `wheelproof {'smoke --level full' if 'rate' in what else 'doctor'}`."
            )
            yield Finding(f"{who} unknown; expected {expected}", fix=hint, undecided=True)
        else:
            yield Finding(f"{who} {has}; expected {expected}", fix=Fix("Correct the node, or drain it."))
    for number, table in enumerate(fleet.tables, 1):
        if not table.hosts and not any(map(table.concerns, names)):
            yield Finding(f"no host with a report matches table {number} of the file ({table.who})", undecided=True)
    if uncovered := [name for name in names if not any(table.concerns(name) for table in fleet.tables)]:
        yield Finding(
            f"no table of the file applies to {plural(len(uncovered), 'host')} with a report: "
            f"{folded(uncovered, _PARTS)}",
            severity=Severity.NOTE,
        )


@rule(
    "MTX204",
    "every input is a readable report",
    why="A truncated or unreadable report means that its host was not examined.",
    example="node-9.json is truncated: its node lost power while writing it",
    fix="Make the report again: `wheelproof doctor --format json --output FILE`.",
)
def unreadable(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Inputs that could not be read; undecided."""
    for input_ in fleet.unreadable:
        yield Finding(f"{input_.source}: {input_.reason}", undecided=True)


@rule(
    "MTX205",
    "each host has one report per command",
    Severity.WARNING,
    why="Two reports of one command under one name are an old and a new one, or come from two hosts with the same "
    "name, one of which is then not examined.",
    example="rack1/node1.json and rack2/node1.json, and neither names its host",
    fix="Remove the old reports, or name the hosts: `wheelproof doctor --host NAME`.",
)
def repeated(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Reports that gave way to a newer one of the same host and command."""
    newer = {(host.name, r.source.command): r.source for host in fleet.hosts for r in host.reports}
    for name, report in fleet.repeated:
        kept = newer.get((name, report.command))  # a host that only an earlier merge knew may have none
        counts = (Evidence("counts", kept.started, kept.source),) if kept else ()
        yield Finding(
            f"{name} has several reports of `wheelproof {report.command}`; only the newest is used",
            (*counts, Evidence("does not count", report.started, report.source)),
        )


@rule(
    "MTX206",
    "every report was merged completely",
    why="A merge keeps a limited number of findings and facts of each report. What it leaves out must not be mistaken "
    "for absent.",
    example="a folder of 7,000 wheels was verified on every node, and each report has a fact for each of them",
    fix="Make smaller reports: with fewer subjects, or with fewer rules (`--select`).",
)
def taken_in_whole(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """What was left out of a report. It is as grave as the gravest of it can be; undecided when no one knows."""
    for host in fleet.hosts:
        for report in host.reports:
            for left_out in report.left_out:
                yield Finding(
                    f"{host.name}: the report of `wheelproof {report.source.command}` has {left_out.what}",
                    (Evidence("report", report.source.started, report.source.source),),
                    severity=left_out.severity,
                    undecided=left_out.severity is None,
                )
