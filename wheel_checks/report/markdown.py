"""The report as a job summary in GitHub's Markdown."""

from __future__ import annotations

import html
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TextIO

from wheel_checks.model import CheckResult, Report, Subject, Table, Verdict
from wheel_checks.phrases import plural, shortened
from wheel_checks.report import wording
from wheel_checks.report.overview import QuietRule, found_causes, quiet_phrase, quiet_rules, worst_subjects
from wheel_checks.report.wording import neutral

LIMIT = 60_000
"""Characters: an issue of GitHub takes 65,536, and a job summary 1 MiB."""

_ROWS = 100
_LAST = 300  # characters reserved for the sentence about omitted parts
_MARKS = {Verdict.PASS: "✅ pass", Verdict.FAIL: "❌ fail", Verdict.UNDECIDED: "❔ undecided"}
_SPECIAL = re.compile(r"([\\`*{}\[\]#|~!@]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//)|(?<=www)\.)")


class _Block(NamedTuple):
    """A section that stands by itself and ends in a newline; ``holds`` names it when it is omitted."""

    text: str
    holds: str = ""
    number: int = 1


def render(report: Report, stream: TextIO) -> None:
    """Write the verdict, the findings by cause, a table of judged subjects, and the rest folded.

    Many wheels become a table of version by architecture. Parts that exceed ``LIMIT`` are omitted and counted.
    """
    size, left = 0, Counter[str]()
    for block in _blocks(report):
        text = f"\n{block.text}" if size else block.text
        if size + len(text) > LIMIT - _LAST:
            left[block.holds or "part"] += block.number
            continue
        size += len(text)
        wording.write(stream, text)
    if left:
        counted = " and ".join(plural(count, what) for what, count in left.items())
        wording.write(stream, f"\n{counted} did not fit into {LIMIT:,} characters; the json format has everything.\n")


def _blocks(report: Report) -> Iterator[_Block]:
    """The sections, the most important first."""
    for line in wording.answer_lines(report):
        yield _Block(f"**{_text(line)}**\n", "answer")
    mark = _MARKS[report.verdict]
    judged = ", ".join(filter(None, (wording.judged_phrase(report), wording.silenced_phrase(report))))
    yield _Block(f"## {mark}: wheelproof {_text(report.command)}, {_text(judged)}\n")
    counts = wording.counts_phrase(wording.concerning(report.subjects))
    for_others = "".join(f", {phrase}" for phrase in filter(None, [wording.publisher_phrase(report)]))
    yield _Block(f"{_text(counts + for_others)} ({wording.cost_phrase(report)}).\n")
    if also := wording.also_line(report):
        yield _Block(f"{_text(also)}\n")
    for statement in report.overview.statements if report.overview else ():
        yield _Block(f"- {_text(statement)}\n", "statement")
    yield from _findings(report)
    if report.overview:
        for table in report.overview.tables:
            yield _Block(_own_table(table), "table")
        for note in report.overview.notes:
            yield _Block(f"{_text(note)}\n", "note")
    else:
        yield from _tables(report)
    if quiet := quiet_rules(report):
        yield _Block(_folded(quiet_phrase(quiet), _quiet_table(quiet)), "table")


def _findings(report: Report) -> Iterator[_Block]:
    """The findings by cause, worst first: those that fit on a screen open, the others folded."""
    found = found_causes(report)
    one = len(report.subjects) == 1
    for number, cause in enumerate(found):
        text = _problem(cause.shown) if one else f"### {_text(cause.about)}\n\n{_problem(cause.shown)}"
        block = text if number < wording.MANY else _folded(f"{cause.about}: {cause.shown.message}", text)
        yield _Block(block, "finding", len(cause.results))


def _tables(report: Report) -> Iterator[_Block]:
    """The subjects in a table; of many, projects with several wheels as versions by architecture, and each file."""
    subjects = worst_subjects(report)
    if len(subjects) <= wording.MANY:
        if subjects:
            yield _Block(_subject_table(report, subjects), "table")
        return
    projects = Counter(wording.fact(subject, "name") for subject in subjects if wording.machine_of(subject))
    several = [s for s in subjects if projects[wording.fact(s, "name")] > 1 and wording.fact(s, "version")]
    for matrix in _matrices(report, several):
        yield _Block(matrix, "table")
    if others := [subject for subject in subjects if subject not in several]:
        yield _Block(_subject_table(report, others), "table")
    if several:
        yield _Block(_folded("Every file", _subject_table(report, several)), "table")


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
    """``CUDA 13.0 (7 wheels)``; differences among the wheels are listed, the most frequent first."""
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


def _quiet_table(rules: Sequence[QuietRule]) -> str:
    rows = [
        [_text(rule.rule), _text(rule.title), str(rule.passed or ""), str(rule.skipped or ""), _text(rule.reason)]
        for rule in rules
    ]
    return _table(["rule", "holds", "passed", "skipped", "why"], rows)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows[:_ROWS]]
    text = "".join(f"| {' | '.join(line)} |\n" for line in lines)
    left = len(rows) - _ROWS
    return text + (f"\n{plural(left, 'more row')} omitted; the json format has everything.\n" if left > 0 else "")


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
    """Prose in which nothing is markup: HTML as entities, Markdown's own characters after a backslash."""
    safe = shortened(neutral(text)).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return _SPECIAL.sub(r"\\\1", safe)


def _code(text: str) -> str:
    """A code span, unless the text has a character that would end it or the table cell around it."""
    safe = shortened(neutral(text))
    return f"`{safe}`" if safe.strip() and not re.search(r"[`|\\]", safe) else _text(text)
