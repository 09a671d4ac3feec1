"""Did every host of a fleet report, once, and was all of it taken in?"""

from __future__ import annotations

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
    why="The host that is broken most is the one that cannot even run the doctor: without a list of names no one "
    "misses it.",
    example="73 hosts were expected, and node-9 gave no report",
    fix="Look at the host itself: is it up, can the scheduler start anything there, is wheelproof installed?",
)
def missing(fleet: FleetFacts, _: Expectations) -> Iterable[Finding]:
    """Which of the expected hosts gave no report (undecided), and which gave one that no one expected (a warning)."""
    if not fleet.expected:
        need(Unavailable("no one said which hosts are expected", "--expect-hosts names them"))
    if absent := fleet.missing:
        yield Finding(
            f"{len(absent)} of {len(fleet.expected)} expected hosts gave no report: {folded(absent, _PARTS)}",
            (Evidence("without a report", folded(absent, _EVIDENCE_PARTS)),),
            Fix("Look at the host itself, or at the log of the job that should have run there."),
            undecided=True,
        )
    if strange := fleet.unexpected:
        yield Finding(
            f"{plural(len(strange), 'host')} gave a report and {'was' if len(strange) == 1 else 'were'} not expected: "
            f"{folded(strange, _PARTS)}",
            fix=Fix("Compare the names: `wheelproof doctor --host NAME` sets them, or else the file's name counts."),
            severity=Severity.WARNING,
        )


@rule(
    "MTX209",
    "every node is what was expected",
    why="What few nodes have differs from the others; what all nodes lack does not. `--expect FILE` says what a node "
    "must be: its GPUs, its driver, its links, its rates.",
    example="72 nodes should have 18 NVLinks up on each of 4 GB200, and rack3-tray07 has 17 on one of them",
    fix="Bring the node in line, or drain it; where the file is out of date, mend the file.",
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
                f"Make a report that has it: `wheelproof {'smoke --level full' if 'rate' in what else 'doctor'}`."
            )
            yield Finding(f"{who} unknown, expected {expected}", fix=hint, undecided=True)
        else:
            yield Finding(f"{who} {has}, expected {expected}", fix=Fix("Bring it in line, or drain it."))
    for number, table in enumerate(fleet.tables, 1):
        if not table.hosts and not any(map(table.concerns, names)):
            yield Finding(f"no host with a report is one of table {number} of the file ({table.who})", undecided=True)
    if uncovered := [name for name in names if not any(table.concerns(name) for table in fleet.tables)]:
        yield Finding(
            f"the file has no table for {plural(len(uncovered), 'host')} with a report: {folded(uncovered, _PARTS)}",
            severity=Severity.NOTE,
        )


@rule(
    "MTX204",
    "every input is a report",
    why="A report that was cut off or cannot be read is a host that no one has looked at.",
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
        kept = newer.get((name, report.command))  # a host that only an earlier merge knew may have none
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
