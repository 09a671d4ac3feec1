"""The report as a job summary in GitHub's Markdown."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TextIO

from wheel_checks.model import CheckResult, Outcome, Report, Subject, Table, Verdict
from wheel_checks.phrases import plural, shortened
from wheel_checks.report import wording
from wheel_checks.report.causes import causes, problems_of
from wheel_checks.report.wording import neutral

LIMIT = 1_000_000
"""Bytes of UTF-8. GitHub refuses a job summary of more than 1 MiB as a whole."""

_ROWS = 500
_MARKS = {Verdict.PASS: "✅ pass", Verdict.FAIL: "❌ fail", Verdict.UNDECIDED: "❔ undecided"}
_SPECIAL = re.compile(r"([\\`*{}\[\]#|~!@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.)")


def render(report: Report, stream: TextIO) -> None:
    """Write the verdict, a table of what was judged, the failures with evidence and fix, and the rest folded away.

    Many wheels become a table of version by architecture. What would pass ``LIMIT`` is left out,
    and a sentence says so.
    """
    size = 0
    for index, block in enumerate(_blocks(report)):
        size += len(block.encode("utf-8")) + 1
        if size > LIMIT:
            wording.write(stream, "\nThe rest did not fit into a job summary; the json format holds everything.\n")
            return
        wording.write(stream, block if index == 0 else f"\n{block}")


def _blocks(report: Report) -> Iterator[str]:
    """Self-contained sections, each ending in a newline, the most important first."""
    yield from (f"**{_text(line)}**\n" for line in wording.answer_lines(report))
    mark = _MARKS[report.verdict]
    judged = ", ".join(filter(None, (wording.judged_phrase(report), wording.silenced_phrase(report))))
    yield f"## {mark}: wheelproof {_text(report.command)}, {_text(judged)}\n"
    counts = wording.counts_phrase(wording.concerning(report.subjects))
    for_others = "".join(f", {phrase}" for phrase in filter(None, [wording.publisher_phrase(report)]))
    yield f"{_text(counts + for_others)} ({wording.cost_phrase(report)}).\n"
    if report.overview:
        yield from (f"- {_text(statement)}\n" for statement in report.overview.statements)
        if report.answers:
            yield from _causes(report)
        else:
            told = [s for s in report.subjects if s.kind not in report.overview.summed_up and wording.problems(s)]
            yield from _findings(told, fold=len(told) > wording.MANY)
        yield from map(_own_table, report.overview.tables)
        yield from (f"{_text(note)}\n" for note in report.overview.notes)
    else:
        yield from _overview(report)
    rest = [(s, r) for s in report.subjects for r in s.results if r.outcome in (Outcome.SKIP, Outcome.PASS)]
    if rest:
        yield _folded(wording.counts_phrase(result for _, result in rest), _rest_table(rest))


def _overview(report: Report) -> Iterator[str]:
    """The subjects in a table, or in several when they are many, and what was found about each."""
    many = len(report.subjects) > wording.MANY
    if many:
        wheels = [
            subject for subject in report.subjects if wording.fact(subject, "version") and wording.machine_of(subject)
        ]
        yield from _matrices(report, wheels)
        others = [subject for subject in report.subjects if subject not in wheels]
        if others:
            yield _subject_table(report, others)
    elif report.subjects:
        yield _subject_table(report, report.subjects)
    yield from _findings(report.subjects, fold=many)
    if many:
        yield _folded("Every file", _subject_table(report, report.subjects))


def _causes(report: Report) -> Iterator[str]:
    """The findings by cause, worst first: those that fit on a screen open, the others folded."""
    found = causes(problems_of(report))
    for number, cause in enumerate(found):
        block = f"### {_text(cause.about)}\n\n{_problem(cause.shown)}"
        yield block if number < wording.MANY else _folded(f"{cause.about}: {cause.shown.message}", block)


def _findings(subjects: Iterable[Subject], *, fold: bool) -> Iterator[str]:
    for subject in subjects:
        if results := wording.problems(subject):
            grouped = causes((subject, result) for result in results)
            problems = "\n".join(_problem(cause.shown) for cause in grouped)
            if fold:
                yield _folded(f"{subject.id}: {wording.counts_phrase(results)}", problems)
            else:
                yield f"### {_code(subject.id)}\n\n{problems}"


def _own_table(table: Table) -> str:
    rows = [[_text(cell) for cell in row] for row in table.rows]
    return f"### {_text(table.title)}\n\n{_table([*map(_text, table.columns)], rows)}"


def _matrices(report: Report, subjects: Iterable[Subject]) -> Iterator[str]:
    """One table per project: versions down, architectures across."""
    projects: dict[str, list[Subject]] = defaultdict(list)
    for subject in subjects:
        projects[wording.fact(subject, "name")].append(subject)
    for project, wheels in projects.items():
        machines = sorted({wording.machine_of(wheel) for wheel in wheels}, reverse=True)
        versions = sorted({wording.fact(wheel, "version") for wheel in wheels}, key=wording.version_key)
        cells: dict[tuple[str, str], list[Subject]] = defaultdict(list)
        for wheel in wheels:
            cells[wording.fact(wheel, "version"), wording.machine_of(wheel)].append(wheel)
        rows = [
            [_text(version), *(_cell(report, cells.get((version, machine), [])) for machine in machines)]
            for version in versions
        ]
        yield _table([_text(project) or "version", *map(_text, machines)], rows)


def _cell(report: Report, wheels: Sequence[Subject]) -> str:
    """``CUDA 13.0 (7 wheels)``; what differs among the wheels is listed, the most frequent first."""
    labels = Counter(wording.accelerator_label(wheel) or "unknown" for wheel in wheels)
    text = ", ".join(f"{_text(label)} ({plural(count, 'wheel')})" for label, count in labels.most_common())
    verdicts = Counter(report.verdict_of(wheel) for wheel in wheels)
    marks = [f"{_MARKS[v]} {verdicts[v]}" for v in (Verdict.FAIL, Verdict.UNDECIDED) if verdicts[v]]
    return "<br>".join([text or "-", *marks])


def _subject_table(report: Report, subjects: Sequence[Subject]) -> str:
    header = ["file", "version", "python", "platform", "accelerator", "size", "verdict"]
    rows = [
        [
            _code(subject.id),
            _text(wording.fact(subject, "local_version", "version")),
            _text(wording.fact(subject, "python")),
            _text(wording.fact(subject, "platform")),
            _text(wording.accelerator_label(subject) or subject.headline),
            wording.size_label(subject),
            _MARKS[report.verdict_of(subject)],
        ]
        for subject in subjects
    ]
    return _table(header, rows)


def _rest_table(results: Sequence[tuple[Subject, CheckResult]]) -> str:
    rows = [
        [_code(subject.id), _text(result.rule), wording.label_of(result), _text(result.message)]
        for subject, result in results
    ]
    return _table(["file", "rule", "outcome", "message"], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows[:_ROWS]]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    left = len(rows) - _ROWS
    return text + (f"\n{plural(left, 'more row')} left out; the json format holds everything.\n" if left > 0 else "")


def _problem(result: CheckResult) -> str:
    place = f" ({_code(place)})" if (place := wording.place_of(result)) else ""
    parts = [f"**{wording.label_of(result)} {_text(result.rule)}**: {_text(result.message)}{place}\n"]
    if result.evidence:
        width = max(len(neutral(evidence.label)) for evidence in result.evidence)
        lines = []
        for evidence in result.evidence:
            source = f"  ({neutral(evidence.source)})" if evidence.source else ""
            line = f"{neutral(evidence.label) + ':':<{min(width, 40) + 2}}{neutral(evidence.value)}{source}"
            lines.append(shortened(line))
        parts.append(_fence("text", lines))
    if result.fix:
        parts.append(f"Fix: {_text(result.fix.summary)}\n")
        for for_shell, steps in groupby(wording.fix_lines(result.fix), key=lambda line: line.for_shell):
            texts = [line.text for line in steps]
            parts.append(_fence("sh", texts) if for_shell else "".join(f"- {_text(text)}\n" for text in texts))
    return "\n".join(parts)


def _fence(language: str, lines: Iterable[str]) -> str:
    body = "\n".join(lines)
    longest = max((len(run) for run in re.findall("`+", body)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{body}\n{fence}\n"


def _folded(summary: str, body: str) -> str:
    # Up to the empty line this is HTML, in which Markdown's backslashes mean nothing.
    return f"<details><summary>{html.escape(shortened(neutral(summary)))}</summary>\n\n{body}\n</details>\n"


def _text(text: str) -> str:
    """Prose in which nothing is markup: HTML as entities, Markdown's own characters behind a backslash."""
    safe = shortened(neutral(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", safe)


def _code(text: str) -> str:
    """A code span, unless the text has a character that would end it or the table cell around it."""
    safe = shortened(neutral(text))
    return f"`{safe}`" if safe.strip() and not re.search(r"[`|\\]", safe) else _text(text)
