"""The fleet for people: differences in the first line, the hosts by facts, the causes by rule, shared facts."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from wheel_checks.facts.fleet.host_list import folded
from wheel_checks.facts.fleet.hosts import Difference, FleetFacts, by_deviating, by_kinds
from wheel_checks.facts.fleet.nodes import unmet_by_hosts
from wheel_checks.facts.fleet.report import ABSENT, UNKNOWN
from wheel_checks.model import CheckResult, FailOn, Outcome, Overview, Report, Severity, Subject, Table, Verdict
from wheel_checks.phrases import plural, summarised
from wheel_checks.report.wording import fix_lines
from wheelproof.fleet.maps import name_map, place_map, rate_table

MARK = "! "  # before a value that few hosts have
_MOST_COLUMNS, _MOST_ROWS, _MOST_CAUSES, _PARTS = 12, 200, 100, 6


def overview(fleet: FleetFacts, hosts: Sequence[Subject], fail_on: FailOn) -> Overview:
    """Everything but the findings about the fleet itself."""
    judge = Report("", "", "", 0.0, (), fail_on)
    verdicts = {host.id: judge.verdict_of(host) for host in hosts}
    causes = _causes(fleet, hosts)
    tables = [
        *_host_table(fleet, hosts, verdicts),
        *place_map(fleet, verdicts),
        *_cause_table(causes),
        *_shared_table(fleet),
    ]
    maps = (*name_map(fleet, verdicts), *rate_table(fleet))
    headline, notes = _headline(fleet, verdicts), tuple(_notes(fleet))
    return Overview(headline, tuple(tables), notes=notes, summed_up=frozenset({"host"}), maps=maps)


def _headline(fleet: FleetFacts, verdicts: Mapping[str, Verdict]) -> str:
    """``72 hosts: node-17 differs in driver and 2 more, 3 hosts fail, 1 expected host gave no report``."""
    deviating = list(by_deviating(fleet.differences).items())
    parts = [
        f"{fleet.topology.phrase(names, differences[0].compared, 3)} {'differs' if len(names) == 1 else 'differ'} in "
        f"{_facts_phrase(differences)}"
        for names, differences in deviating[:2]
    ]
    unmet = unmet_by_hosts(fleet.hosts, fleet.tables).items()
    if lacking := {name for (_, _, has), names in unmet if has is not None for name in names}:
        parts.insert(0, f"{fleet.topology.phrase(lacking, verdicts, 3)} {_are(lacking)} not as expected")
    if len(deviating) > 2:
        parts.append(f"{len(deviating) - 2} more differences")
    if kinds := by_kinds(fleet.differences):
        parts.append(f"{len(kinds[0][0].common)} kinds of hosts, by {_facts_phrase(kinds[0])}")
    if slow := {one.host for one in fleet.rates.slow}.union(*(one.hosts for one in fleet.rates.groups)):
        parts.append(f"{fleet.topology.phrase(slow, verdicts, 3)} {_are(slow)} slow")
    failing = [name for name, verdict in verdicts.items() if verdict is Verdict.FAIL]
    undecided = sum(verdict is Verdict.UNDECIDED for verdict in verdicts.values())
    if failing:
        named = f" ({folded(failing, 3)})"
        parts.append(f"{plural(len(failing), 'host')} fail{'s' * (len(failing) == 1)}{named}")
    if undecided:
        parts.append(f"{plural(undecided, 'host')} undecided")
    if fleet.missing:
        parts.append(f"no report from {folded(fleet.missing, 3)}")
    if fleet.unreadable:
        parts.append(f"{plural(len(fleet.unreadable), 'input')} cannot be read")
    if in_part := sum(bool(report.left_out) for host in fleet.hosts for report in host.reports):
        parts.append(f"{plural(in_part, 'report')} read only in part")
    return f"{plural(len(fleet.hosts), 'host')}: {'; '.join(parts) or 'all alike, and none fails'}"


def _are(names: Collection[str]) -> str:
    return "is" if len(names) == 1 else "are"


def _facts_phrase(differences: Sequence[Difference]) -> str:
    return summarised([difference.fact for difference in differences], 3)


def _causes(fleet: FleetFacts, hosts: Sequence[Subject]) -> list[tuple[str, bool, list[tuple[str, CheckResult]]]]:
    """The failed rules, except notes: whether it is a root cause on any host, and the hosts. Roots come first."""
    roots = {host.root for host in fleet.hosts}
    found: dict[str, dict[str, CheckResult]] = defaultdict(dict)
    for host in hosts:
        for result in host.results:
            if result.outcome is Outcome.ERROR or result.severity is not Severity.NOTE:
                found[result.rule].setdefault(host.id, result)
    causes = [(rule, rule in roots, list(where.items())) for rule, where in found.items()]
    return sorted(causes, key=lambda cause: (not cause[1], -cause[2][0][1].severity.rank, -len(cause[2]), cause[0]))


def _cause_table(causes: Sequence[tuple[str, bool, list[tuple[str, CheckResult]]]]) -> Iterator[Table]:
    """One row per rule; of messages that differ by host the most frequent."""
    rows = []
    for rule, is_root, where in causes[:_MOST_CAUSES]:
        messages = Counter(result.message for _, result in where)
        message = messages.most_common(1)[0][0]
        first = next(result for _, result in where if result.message == message)
        text = f"{message} (and {len(messages) - 1:,} other wordings)" if len(messages) > 1 else message
        kind = "not checked" if first.outcome is Outcome.ERROR else str(first.severity)
        names = folded([name for name, _ in where], _PARTS)
        fix = ""
        if first.fix:
            commands = (line.text for line in fix_lines(first.fix) if not line.text.startswith("# "))
            fix = ": ".join([first.fix.summary.rstrip("."), *islice(commands, 1)])
        rows.append((rule, f"{kind}{', root cause' * is_root}", f"{len(where):,}", names, text, fix))
    if rows:
        yield Table(
            "Causes, by rule", ("rule", "is", "hosts", "which", "what", "fix"), tuple(rows), frozenset({"hosts"})
        )


def _host_table(fleet: FleetFacts, hosts: Sequence[Subject], verdicts: Mapping[str, Verdict]) -> Iterator[Table]:
    """The heat map: hosts by differing facts. Equal hosts share a row, the most deviant first."""
    differences = fleet.differences[:_MOST_COLUMNS]
    by_difference = [_values(difference) for difference in differences]
    roots = {host.name: host.root for host in fleet.hosts}
    profiles: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for host in hosts:
        cause = roots[host.id] or _worst(host)
        values = (by_host.get(host.id, "") for by_host in by_difference)  # "" without a report of this command
        profiles[(verdicts[host.id].value, cause, *values)].append(host.id)
    if not profiles:
        return
    worth = {Verdict.FAIL.value: 2, Verdict.UNDECIDED.value: 1, Verdict.PASS.value: 0}
    marks = {cells: sum(cell.startswith(MARK) for cell in cells) for cells in profiles}
    ordered = sorted(profiles, key=lambda cells: (-marks[cells], -worth[cells[0]], len(profiles[cells])))
    rows = [(folded(profiles[cells], 3), f"{len(profiles[cells]):,}", *cells) for cells in ordered[:_MOST_ROWS]]
    states: dict[tuple[int, int], Verdict | Severity] = {
        (row, column): Severity.WARNING
        for row, cells in enumerate(rows)
        for column, cell in enumerate(cells)
        if cell.startswith(MARK)
    }
    states |= {(row, 2): Verdict(cells[2]) for row, cells in enumerate(rows)}
    columns = ("host", "hosts", "verdict", "cause", *(difference.fact for difference in differences))
    more = f"; {len(ordered) - _MOST_ROWS:,} more rows are omitted" if len(ordered) > _MOST_ROWS else ""
    yield Table(
        f"Hosts by what differs ({MARK}few have this{more})", columns, tuple(rows), frozenset({"hosts"}), states
    )


def _values(difference: Difference) -> dict[str, str]:
    """The value of each host, marked if it is rare."""
    common = {name: value for value, names in difference.common.items() for name in names}
    return common | {name: f"{MARK}{value}" for value, names in difference.rare.items() for name in names}


def _worst(host: Subject) -> str:
    """The rule of the worst finding that is more than a note."""
    found = [r for r in host.results if r.outcome is Outcome.FAIL and r.severity is not Severity.NOTE]
    return max(found, key=lambda result: result.severity.rank).rule if found else ""


def _shared_table(fleet: FleetFacts) -> Iterator[Table]:
    shared = tuple((fact, value) for fact, value in fleet.shared.items() if value not in {UNKNOWN, ABSENT})
    if shared and len(fleet.hosts) > 1:
        yield Table("The same on all hosts", ("what", "value"), shared)


def _notes(fleet: FleetFacts) -> Iterator[str]:
    if len(fleet.differences) > _MOST_COLUMNS:
        yield f"The hosts differ in {len(fleet.differences)} facts; the table shows {_MOST_COLUMNS} of them."
    if fleet.individual:
        yield f"Not compared, since most hosts have different values: {summarised(fleet.individual, 6)}."
    if len(fleet.hosts) == 1:
        yield "There is only one host, so nothing was compared."
    if any(host.results for host in fleet.hosts):
        yield "With -v, the findings of every host; `wheelproof rules ID` explains one."
