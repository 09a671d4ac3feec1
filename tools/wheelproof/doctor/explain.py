"""``wheelproof explain``: what a log says, judged anywhere: nothing of the machine that wrote it is looked at."""

from __future__ import annotations

from collections.abc import Sequence

from wheel_checks.facts.expectations import Expectations
from wheel_checks.facts.host.log.facts import LARGEST, MOST_LINES, Log, parse_log
from wheel_checks.model import Overview, Report, Subject
from wheel_checks.phrases import and_more
from wheel_checks.rules.host.log_texts import Recognition, recognise
from wheel_checks.runner import run_rules
from wheelproof.reporting import EVERY_RULE, OpenReport, Selection

NEXT = "`wheelproof doctor`, run on the machine of the log, finds the cause by looking, and proves it."
MORE = "Give more of the log, from its beginning: the first error tells most, and the last line least."


def explain(data: bytes, name: str, selection: Selection = EVERY_RULE) -> Report:
    """The report on a log: a finding for each cause that it shows, the root first, or none with "not recognised"."""
    opened = OpenReport("explain")
    log = parse_log(data)
    found = recognise(log)
    results = run_rules(selection.rules("log"), log, Expectations())
    facts = {
        "recognised": bool(found),
        "lines": log.line_count,
        "catalogue": [name for one in found for name in one.entry["catalogue"][:1]],
        "cut": log.cut,
    }
    return opened.close(
        (Subject(name, "log", "", facts, results),),
        selection,
        overview=Overview(f"{name}: {_headline(log, found)}", notes=tuple(_notes(log, found))),
    )


def _headline(log: Log, found: Sequence[Recognition]) -> str:
    if log.is_empty:
        return "not recognised: the log is empty"
    if not found:
        return f"not recognised: none of {log.line_count:,} lines has a text of a known cause"
    return f"{found[0].says} (line {found[0].line}){and_more(len(found) - 1, before=', ')}"


def _notes(log: Log, found: Sequence[Recognition]) -> list[str]:
    notes = [] if found else [MORE]
    if log.cut:
        limit = LARGEST >> 20
        read = f"Only the first {limit} MiB were read, and at most {MOST_LINES:,} lines"
        notes.append(f"{read}; for its end: tail -c {limit}M FILE | wheelproof explain")
    return [*notes, NEXT]
