"""``wheelproof explain``: the cause in a log, on any machine; the machine that wrote it is not inspected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wheel_checks.catalogue import select_rules
from wheel_checks.facts.host.log.facts import LARGEST, MOST_LINES, Log, parse_log
from wheel_checks.facts.wheel.expectations import Expectations
from wheel_checks.model import CheckResult, Finding, Outcome, Overview, Report, Rule, Severity, Subject
from wheel_checks.phrases import and_more
from wheel_checks.rules.host.log_texts import UNRECOGNISED, not_recognised
from wheel_checks.runner import run_rules
from wheelproof.doctor.log_causes import LogCause, causes, in_order
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection

NEXT = "Run `wheelproof doctor` on the host of the log to confirm the cause."
LEFT_OUT = "rules that match this log are disabled by --select, --ignore or the configuration"


def explain(data: bytes, name: str, selection: Selection = EVERY_RULE) -> Report:
    """The report on a log: a finding for each cause that it shows, the root first; undecided if a failure has none."""
    opened = OpenReport("explain")
    log = parse_log(data)
    found = causes(log)
    selection.rules("log")  # for its error
    facts = {
        "recognised": bool(found),
        "lines": log.line_count,
        "catalogue": [one.catalogue for one in found if one.catalogue],
        "cut": log.cut,
    }
    return opened.close(
        (Subject(name, "log", "", facts, tuple(_results(log, found, selection))),),
        selection,
        overview=Overview(_headline(log, found, name), notes=tuple(_notes(log, found))),
    )


def _results(log: Log, found: Sequence[LogCause], selection: Selection) -> Iterator[CheckResult]:
    """A result for each cause, under its id; if all are harmless, one on failures without a known cause."""
    rules = {rule.id: rule for kind in ("host", "log") for rule in select_rules(kind)}
    results = [_result(rules[identity], finding) for identity, finding in in_order(found)]
    kept = list(selection.kept(results))
    yield from kept
    if all(one.harmless for one in found):
        yield from run_rules([rules[UNRECOGNISED]], log, Expectations())
    if results and all(result.outcome is Outcome.SKIP for result in kept):
        yield CheckResult(UNRECOGNISED, rules[UNRECOGNISED].title, Outcome.ERROR, Severity.ERROR, LEFT_OUT)


def _result(rule: Rule, finding: Finding) -> CheckResult:
    return CheckResult(
        rule.id,
        rule.title,
        Outcome.FAIL,
        finding.severity or rule.severity,
        finding.message,
        finding.evidence,
        finding.fix,
    )


def _headline(log: Log, found: Sequence[LogCause], name: str) -> str:
    reason, _ = not_recognised(log) if all(one.harmless for one in found) else ("", ())
    if reason:
        return f"not recognised: {reason} ({name})"
    return f"{found[0].says} (line {found[0].line} of {name}){and_more(len(found) - 1, before=', ')}"


def _notes(log: Log, found: Sequence[LogCause]) -> list[str]:
    notes = []
    if log.cut:
        limit = LARGEST >> 20
        read = f"Only the first {limit} MiB were read, and at most {MOST_LINES:,} lines"
        notes.append(f"{read}; to read its end: tail -c {limit}M FILE | wheelproof explain")
    return [*notes, NEXT] if found else notes
