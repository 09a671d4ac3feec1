"""Puts the reports of each host together, compares the hosts, and makes one report of all."""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from wheel_checks.catalogue import get_rule, select_rules
from wheel_checks.errors import FormatError
from wheel_checks.expectations import Expectations
from wheel_checks.facts.fleet import Difference, FleetFacts, Host, ReportSource, Unreadable
from wheel_checks.model import FailOn, Report, Subject
from wheel_checks.rules.fleet import KIND
from wheel_checks.runner import run_rules
from wheelproof import __version__
from wheelproof.fleet.inputs import Document
from wheelproof.fleet.overview import overview
from wheelproof.fleet.reading import MERGE, ReportReader

ALWAYS = ("MTX203", "MTX204")  # hold whatever rules were selected: what nobody looked at must not look like a pass


@dataclass(frozen=True, slots=True)
class MergeOptions:
    """Which hosts should be there (none: nobody knows), and which rules count from which severity on."""

    expected: Sequence[str] = ()
    select: Sequence[str] = ()
    ignore: Sequence[str] = ()
    fail_on: FailOn = FailOn.ERROR


def merge(documents: Iterable[Document], options: MergeOptions) -> Report:
    """One subject for the fleet, with what differs, and one for each host, with its findings.

    Documents are read one after another, and only what is compared is kept of each. Raises UsageError for a rule that
    does not exist.
    """
    started, clock = datetime.now(UTC), time.perf_counter()
    rules = select_rules(KIND, options.select, options.ignore)
    rules += [rule for rule in map(get_rule, ALWAYS) if rule not in rules]
    fleet = gather(documents, options.expected)
    hosts = [_selected(subject, options) for subject in _host_subjects(fleet)]
    told = Subject("fleet", KIND, f"{len(hosts):,} hosts", _fleet_facts(fleet), run_rules(rules, fleet, Expectations()))
    return Report(
        command=MERGE,
        version=__version__,
        started=started.strftime("%Y-%m-%dT%H:%M:%SZ"),
        seconds=time.perf_counter() - clock,
        subjects=(told, *hosts),
        fail_on=options.fail_on,
        overview=overview(fleet, hosts, options.fail_on),
    )


def gather(documents: Iterable[Document], expected: Sequence[str] = ()) -> FleetFacts:
    """The hosts of all documents. Of several reports of one command about one host the newest counts."""
    reader = ReportReader()
    parts: dict[str, list[Host]] = defaultdict(list)
    unreadable: list[Unreadable] = []
    repeated: list[tuple[str, ReportSource]] = []
    for document in documents:
        try:
            hosts = reader.hosts(document)
        except FormatError as error:
            unreadable.append(Unreadable(document.source, str(error)))
            continue
        for host in hosts:
            parts[host.name], older = _newest([*parts[host.name], host])
            repeated += [(host.name, report) for old in older for report in old.reports]
    hosts = [_joined(parts[name]) for name in sorted(parts, key=natural)]
    return FleetFacts(tuple(hosts), tuple(dict.fromkeys(expected)), tuple(unreadable), tuple(repeated))


def natural(name: str) -> tuple[tuple[str, int], ...]:
    """A key that sorts node-2 before node-10."""
    return tuple((text, int(number or -1)) for text, number in re.findall(r"([^0-9]*)([0-9]{0,18})", name))


def _newest(parts: list[Host]) -> tuple[list[Host], list[Host]]:
    """The parts of one host that count, and those that do not: a newer one has a report of the same command."""
    kept: list[Host] = []
    older: list[Host] = []
    for part in sorted(parts, key=lambda host: max((r.started for r in host.reports), default=""), reverse=True):
        commands = {command for other in kept for command in other.compared}
        (older if commands & part.compared.keys() else kept).append(part)
    return kept, older


def _joined(parts: list[Host]) -> Host:
    if len(parts) == 1:
        return parts[0]
    parts = sorted(parts, key=lambda part: part.reports[0].command if part.reports else "")  # the doctor's comes early
    return Host(
        parts[0].name,
        parts[0].headline,
        {command: facts for part in parts for command, facts in part.compared.items()},
        tuple(result for part in parts for result in part.results),
        next((part.root for part in parts if part.root), ""),
        tuple(report for part in parts for report in part.reports),
    )


def _host_subjects(fleet: FleetFacts) -> list[Subject]:
    deviates: dict[str, dict[str, str]] = defaultdict(dict)
    for difference in fleet.differences:
        for value, names in difference.rare.items():
            for name in names:
                deviates[name][difference.fact] = value
    return [
        Subject(
            host.name,
            "host",
            host.headline,
            {
                "host": host.name,
                "root": host.root,
                "deviates": deviates.get(host.name, {}),
                "compared": host.compared,
                "reports": [asdict(report) for report in host.reports],
            },
            host.results,
        )
        for host in fleet.hosts
    ]


def _selected(subject: Subject, options: MergeOptions) -> Subject:
    if not (options.select or options.ignore):
        return subject
    chosen = tuple(prefix.upper() for prefix in options.select) or ("",)
    ignored = tuple(prefix.upper() for prefix in options.ignore)
    kept = tuple(r for r in subject.results if r.rule.startswith(chosen) and not r.rule.startswith(ignored))
    return Subject(subject.id, subject.kind, subject.headline, subject.facts, kept)


def _fleet_facts(fleet: FleetFacts) -> dict[str, Any]:
    return {
        "hosts": len(fleet.hosts),
        "differences": [_difference_facts(difference) for difference in fleet.differences],
        "shared": fleet.shared,
        "missing": fleet.missing,
        "unreadable": [asdict(unreadable) for unreadable in fleet.unreadable],
    }


def _difference_facts(difference: Difference) -> dict[str, Any]:
    """A value that many hosts have comes with their number; who deviates, by name."""
    return {
        "fact": difference.fact,
        "common": [{"value": value, "hosts": len(names)} for value, names in difference.common.items()],
        "rare": [{"value": value, "hosts": names} for value, names in difference.rare.items()],
    }
