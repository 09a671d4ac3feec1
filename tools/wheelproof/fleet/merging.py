"""Puts the reports of each host together, compares the hosts, and makes one report of all."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from wheel_checks.catalogue import get_rule
from wheel_checks.errors import FormatError
from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.fleet.host_list import natural
from wheel_checks.facts.fleet.hosts import Difference, FleetFacts, Unreadable, doctor_first
from wheel_checks.facts.fleet.nodes import Nodes
from wheel_checks.facts.fleet.report import Host, HostReport, ReportSource
from wheel_checks.model import Report, Subject
from wheel_checks.phrases import plural
from wheel_checks.rules.fleet import KIND
from wheel_checks.runner import run_rules
from wheelproof.fleet.inputs import Document
from wheelproof.fleet.overview import overview
from wheelproof.fleet.places import place_reader
from wheelproof.fleet.reading import MERGE, ReportReader
from wheelproof.reporting import OpenReport, Selection

# These hold whatever rules were selected: what no one looked at must not look like a pass
ALWAYS = ("MTX203", "MTX204", "MTX206", "MTX209")


def merge(
    documents: Iterable[Document],
    expected: Sequence[str],
    selection: Selection,
    topology: str = "",
    tables: Sequence[Nodes] = (),
) -> Report:
    """One subject for the fleet, with what differs, and one for each host, with its findings.

    ``expected`` are the hosts that should be there (none: no one knows), ``topology`` says where hosts are, and
    ``tables`` what they must be. Documents are read one after another, and only what is compared is kept of each.
    Raises UsageError for a rule that does not exist.
    """
    opened, places = OpenReport(MERGE), place_reader(topology)
    rules = [*(rule for rule in selection.rules(KIND) if rule.id not in ALWAYS), *map(get_rule, ALWAYS)]
    named = {name for table in tables for name in table.hosts or ()}
    fleet = gather(documents, [*expected, *sorted(named, key=natural)])
    fleet = replace(fleet, named_places=places([host.name for host in fleet.hosts]), tables=tuple(tables))
    hosts = _host_subjects(fleet, selection)
    told = Subject(
        "fleet", KIND, plural(len(hosts), "host"), _fleet_facts(fleet), run_rules(rules, fleet, Expectations())
    )
    return opened.close((told, *hosts), selection, overview=overview(fleet, hosts, selection.fail_on))


def gather(documents: Iterable[Document], expected: Sequence[str] = ()) -> FleetFacts:
    """The hosts of all documents. Of several reports of one command about one host the latest counts.

    What an earlier merge missed is missed still, unless it is there now.
    """
    reader = ReportReader()
    asked, strange = dict.fromkeys(expected), set[str]()
    newest: dict[str, dict[str, HostReport]] = defaultdict(dict)
    unreadable: list[Unreadable] = []
    repeated: list[tuple[str, ReportSource]] = []
    for document in documents:
        try:
            told = reader.read(document)
        except FormatError as error:
            unreadable.append(Unreadable(document.source, str(error)))
            continue
        asked |= dict.fromkeys(told.expected)
        strange.update(told.unexpected)
        unreadable += told.unreadable
        repeated += told.repeated
        for host in told.hosts:
            for report in host.reports:
                command = report.source.command
                known = newest[host.name].setdefault(command, report)
                if known is not report:
                    # sorted() is stable: of two that started at once the one that was read first counts
                    older, newest[host.name][command] = sorted((report, known), key=lambda r: r.source.started)
                    repeated.append((host.name, older.source))
    names = sorted(newest, key=natural)
    hosts = tuple(Host(n, tuple(newest[n][c] for c in sorted(newest[n], key=doctor_first))) for n in names)
    unexpected = (host.name for host in hosts if (expected or host.name in strange) and host.name not in asked)
    return FleetFacts(hosts, tuple(asked), tuple(unexpected), tuple(unreadable), tuple(repeated))


def _host_subjects(fleet: FleetFacts, selection: Selection) -> list[Subject]:
    deviates: dict[str, dict[str, str]] = defaultdict(dict)
    for difference in fleet.differences:
        for value, names in difference.rare.items():
            for name in names:
                deviates[name][difference.fact] = value
    return [
        _host_subject(_selected(host, selection), deviates.get(host.name, {}), fleet.topology.of(host.name))
        for host in fleet.hosts
    ]


def _host_subject(host: Host, deviates: Mapping[str, str], places: Mapping[str, str]) -> Subject:
    facts = {
        "host": host.name,
        "root": host.root,
        "places": places,
        "deviates": deviates,
        "compared": {report.source.command: report.facts for report in host.reports if report.facts is not None},
        "reports": [_report_facts(report) for report in host.reports],
    }
    return Subject(host.name, "host", host.headline, facts, host.results)


def _report_facts(report: HostReport) -> dict[str, Any]:
    """Where a report was, and what a merge of this merge needs to distinguish its results from those of the others."""
    told = {"headline": report.headline, "root": report.root, "findings": len(report.results)}
    return asdict(report.source) | told | {"left_out": [asdict(left_out) for left_out in report.left_out]}


def _selected(host: Host, selection: Selection) -> Host:
    return Host(
        host.name, tuple(replace(report, results=tuple(selection.kept(report.results))) for report in host.reports)
    )


def _fleet_facts(fleet: FleetFacts) -> dict[str, Any]:
    return {
        "hosts": len(fleet.hosts),
        "differences": [_difference_facts(difference) for difference in fleet.differences],
        "shared": fleet.shared,
        "expected": fleet.expected,
        "missing": fleet.missing,
        "unexpected": fleet.unexpected,
        "unreadable": [asdict(unreadable) for unreadable in fleet.unreadable],
        "repeated": [{"host": name, **asdict(report)} for name, report in fleet.repeated],
    }


def _difference_facts(difference: Difference) -> dict[str, Any]:
    """A value that many hosts have comes with their number; who deviates, by name."""
    return {
        "fact": difference.fact,
        "common": [{"value": value, "hosts": len(names)} for value, names in difference.common.items()],
        "rare": [{"value": value, "hosts": names} for value, names in difference.rare.items()],
    }
