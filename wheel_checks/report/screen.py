"""A report on one screen: the answer, the worst cause with its fix, then as much of the rest as there is room for."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from rich.text import Text

from wheel_checks.model import CheckResult, Evidence, Report, Table, Verdict
from wheel_checks.phrases import abbreviated, joined, plural
from wheel_checks.report import wording
from wheel_checks.report.causes import Cause
from wheel_checks.report.overview import found_causes, worst_subjects
from wheel_checks.report.terminal import (
    LABEL,
    ReportConsole,
    answers,
    captured,
    indented,
    own_table,
    problem,
    prose,
    subjects_table,
    verdict,
)

_ANSWERS = 6  # of several targets, the worst first
_EVIDENCE = 3  # values of the worst cause, each on a line
_TABLE = 5  # lines that are kept for tables: a title, headings, and the worst rows
_BRIEF, _LABELS = 3, 24  # lines of a finding, and the columns to the left of its message
_DECIDED = (Verdict.FAIL.value.upper(), Verdict.UNDECIDED.value.upper())


def rows_of(lines: Sequence[str], width: int) -> int:
    """How many rows of a terminal the lines take: a command that is longer than the width is wrapped by it."""
    return sum(max(1, -(-Text.from_ansi(line).cell_len // width)) if len(line) > width else 1 for line in lines)


def first_screen(
    console: ReportConsole, report: Report, room: int, before: Sequence[str] = (), after: Sequence[str] = ()
) -> list[str]:
    """The lines of the report that fit in ``room`` rows, then of those ``after`` it; the last line counts what is cut.

    Those ``before`` it stand in place of the answers.

    Only the worst finding is never left out, nor is its fix, however long they are.
    """
    screen = _Screen(console, room - 1)
    with captured(console) as head:
        most = room // 2 if before else _ANSWERS
        screen.cut(answers(console, report, before, most), "more line" if before else "more answer")
        verdict(console, report)
    screen.left -= screen.rows(head)
    rest, tables = _rest(console, report), _tables(console, report)
    kept = _TABLE if report.overview and report.overview.tables else 0
    body = screen.findings(report, kept)
    some = screen.sentences(rest, kept)
    rows = [line for table in tables for line in screen.table(table)]
    more = screen.fitting(after)
    screen.cut(len(rest) - len(some), "more fact")
    screen.cut(sum(table.left_out for table in tables), "more row")
    screen.cut(len(after) - len(more), "more line")
    if phrase := wording.publisher_phrase(report):
        screen.left_out.append(phrase)
    return [*head, *body, *(line for sentence in some for line in sentence), *rows, *more, *screen.last()]


@dataclass(slots=True)
class _Finding:
    """A cause in few lines, and in many, then in fewer; ``lines`` are those that are shown."""

    brief: list[str]
    longer: tuple[list[str], ...]
    lines: list[str]


@dataclass(slots=True)
class _Table:
    """A table that can be drawn with its first rows alone; ``left_out`` rows were not."""

    length: int
    draw: Callable[[int], list[str]]
    left_out: int = 0


@dataclass(slots=True)
class _Screen:
    """How many rows are ``left``, and what was ``left_out``."""

    console: ReportConsole
    left: int
    left_out: list[str] = field(default_factory=list)

    def rows(self, lines: Sequence[str]) -> int:
        return rows_of(lines, self.console.width)

    def cut(self, count: int, noun: str) -> None:
        """Note that so many were left out."""
        if count:
            self.left_out.append(plural(count, noun))

    def last(self) -> list[str]:
        """The line that says what was left out."""
        for length in range(len(self.left_out), 0, -1):
            shown = self.left_out if length == len(self.left_out) else [*self.left_out[:length], "more"]
            with captured(self.console) as lines:
                prose(self.console, f"-v shows {joined(shown)}", style="dim")
            if len(lines) == 1:
                return lines
        return []

    def fitting(self, lines: Sequence[str]) -> Sequence[str]:
        """The first lines that fit."""
        while lines and self.rows(lines) > max(self.left, 0):
            lines = lines[:-1]
        self.left -= self.rows(lines)
        return lines

    def sentences(self, every: Sequence[list[str]], kept: int) -> list[list[str]]:
        """The sentences that fit, each whole, when ``kept`` rows are for others."""
        fitting = []
        for lines in every:
            if (rows := self.rows(lines)) <= self.left - kept:
                self.left -= rows
                fitting.append(lines)
        return fitting

    def table(self, table: _Table) -> list[str]:
        """The table with as many rows as fit."""
        for length in range(min(table.length, self.left), 0, -1):
            lines = table.draw(length)
            if (rows := self.rows(lines)) <= self.left:
                self.left -= rows
                table.left_out = table.length - length
                return lines
        table.left_out = table.length
        return []

    def findings(self, report: Report, kept: int) -> list[str]:
        """The worst finding with its fix, then the others, each in a few lines or in more, where ``kept`` rows stay."""
        every = found_causes(report)
        found = [cause for cause in every if not cause.is_note]
        shown: list[_Finding] = []
        for cause in found:
            finding = _finding(self.console, cause, report)
            if not shown:
                fitting = (some for some in finding.longer if self.rows(some) <= self.left - kept)
                finding.lines = next(fitting, finding.longer[-1])
            elif self.rows(finding.brief) > self.left - kept:
                break
            self.left -= self.rows(finding.lines)
            shown.append(finding)
        if len(shown) == len(found):
            self._lengthen(shown[1:], kept)
        if any(finding.lines is not finding.longer[0] for finding in shown):
            self.left_out.append("the evidence" if len(shown) == 1 else "the evidence and every fix")
        self.cut(len(found) - len(shown), "more finding")
        self.cut(len(every) - len(found), "note")
        return [line for finding in shown for line in finding.lines]

    def _lengthen(self, findings: Sequence[_Finding], kept: int) -> None:
        for finding in findings:
            for longer in finding.longer:
                more = self.rows(longer) - self.rows(finding.lines)
                if more <= self.left - kept:
                    finding.lines = longer
                    self.left -= more
                    break


def _finding(console: ReportConsole, cause: Cause, report: Report) -> _Finding:
    """The cause in a few lines, in full, and without most of its evidence."""
    is_host = all(subject.kind == "host" for subject in report.subjects)  # the second line says which one
    is_named = len(report.subjects) == 1  # so does it here
    about = "" if is_host or is_named else cause.about
    result = cause.shown
    with captured(console) as brief:
        most = max(_BRIEF * (console.width - _LABELS) - len(about), _LABELS)
        problem(console, replace(result, message=abbreviated(result.message, most)), about, brief=True)
    longer = []
    for shown in (result, _shorter(result, console.width), replace(result, evidence=())):
        with captured(console) as lines:
            problem(console, shown, about)
        longer.append(lines)
    return _Finding(brief, tuple(longer), brief)


def _shorter(result: CheckResult, width: int) -> CheckResult:
    """The finding with a line each of its first evidence."""
    few = [item for item in result.evidence if item.value not in result.message][:_EVIDENCE]
    label = max((len(item.label) for item in few), default=0)
    limit = width - 12 - (label if label <= LABEL else 0)
    values = [item.value.removeprefix(f"{item.label} ") for item in few]
    shown = (Evidence(item.label, abbreviated(value, limit)) for item, value in zip(few, values, strict=True))
    return replace(result, evidence=tuple(shown))


def _rest(console: ReportConsole, report: Report) -> list[list[str]]:
    """What else is said of the whole, by sentences: of one wheel how it runs, of many what the overview says."""
    sentences: Iterable[str] = ()
    if report.overview:
        sentences = (*report.overview.statements, *report.overview.notes)
    elif len(report.subjects) == 1:
        subject = report.subjects[0]
        sentences = filter(None, (*wording.gpu_lines(subject), wording.archive_line(subject)))
    found = []
    for sentence in sentences:
        with captured(console) as lines:
            indented(console, sentence)
        found.append(lines)
    return found


def _tables(console: ReportConsole, report: Report) -> list[_Table]:
    """The tables of the overview, or that of the subjects where there are several; the worst rows first."""

    def of_data(data: Table) -> _Table:
        worst = sorted(data.rows, key=lambda row: min((_DECIDED.index(c) for c in row if c in _DECIDED), default=2))

        def draw(length: int) -> list[str]:
            with captured(console) as lines:
                own_table(console, _without_empty_columns(replace(data, rows=tuple(worst[:length]))))
            return lines

        return _Table(len(worst), draw)

    def of_subjects(length: int) -> list[str]:
        with captured(console) as lines:
            console.print(subjects_table(report, worst_subjects(report)[:length]))
        return lines

    if report.overview:
        return [of_data(data) for data in report.overview.tables]
    return [_Table(len(report.subjects), of_subjects)] if len(report.subjects) > 1 else []


def _without_empty_columns(data: Table) -> Table:
    kept = [at for at in range(len(data.columns)) if any(row[at] for row in data.rows)]
    rows = tuple(tuple(row[at] for at in kept) for row in data.rows)
    return replace(data, columns=tuple(data.columns[at] for at in kept), rows=rows)
