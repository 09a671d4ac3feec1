"""The report for people at a terminal or in a log. The only module that imports rich."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterable
from dataclasses import replace
from typing import TextIO

from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from wheel_checks.model import CheckResult, Outcome, Overview, Report, Subject, Verdict
from wheel_checks.phrases import plural
from wheel_checks.report import wording
from wheel_checks.report.causes import causes, problems_of
from wheel_checks.report.wording import neutral

_VERDICT_STYLES = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red", Verdict.UNDECIDED: "bold yellow"}
_LABEL_STYLES = {
    "error": "bold red",
    "warning": "yellow",
    "note": "cyan",
    "not checked": "bold magenta",
    "passed": "green",
}
_UNLIMITED = 100_000
_LINES = 18  # of findings and statements, below the answer and the verdict: what fits on a screen
_EVIDENCE = 3  # values that are shown of each cause


def render(
    report: Report,
    stream: TextIO,
    *,
    color: bool | None = None,
    width: int | None = None,
    quiet: bool = False,
    verbose: int = 0,
    answered: bool = False,
) -> None:
    """Write the report for people: the answers, the verdict, then what is wrong, the evidence, and the fix.

    ``color`` None means: when ``stream`` is a terminal and NO_COLOR is unset or empty. ``width`` None means the
    terminal's own; elsewhere lines are not wrapped, so that a log can be searched. ``quiet`` leaves the answers and
    the verdict line; ``verbose`` 1 adds skipped and passed checks and all findings, 2 the facts. ``answered`` says that
    the answers have been written already.
    """
    console = console_for(stream, color=color, width=width)
    with console.capture() as capture:
        for line in () if answered else wording.answer_lines(report):
            console.print(Text(line, style=_VERDICT_STYLES[report.verdict]), soft_wrap=True)
        _verdict(console, report)
        if not quiet:
            _body(console, report, verbose)
    # Columns are padded to their width; a log does not need that.
    wording.write(stream, "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines()))


def console_for(stream: TextIO, *, color: bool | None = None, width: int | None = None) -> Console:
    """A console whose output is captured and then written to ``stream``; see :func:`render` for the options."""
    terminal = stream.isatty()
    if color is None:
        color = terminal and not os.environ.get("NO_COLOR")
    if width is None:
        width = shutil.get_terminal_size().columns if terminal else _UNLIMITED
    return Console(
        file=io.StringIO(),
        force_terminal=color,
        no_color=not color,
        color_system="standard" if color else None,
        width=max(width, 40),
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _verdict(console: Console, report: Report) -> None:
    line = Text()
    line.append(report.verdict.value.upper(), style=_VERDICT_STYLES[report.verdict])
    silenced = f", {phrase}" if (phrase := wording.silenced_phrase(report)) else ""
    if report.overview:
        line.append(f"  {neutral(report.overview.headline)}", style="bold")
        if report.answers:
            line.append(f": {wording.counts_phrase(wording.concerning(report.subjects))}")
        line.append(silenced)
        line.append(f" ({wording.cost_phrase(report)})", style="dim")
        console.print(line, soft_wrap=True)
        return
    line.append(f"  {wording.judged_phrase(report)}", style="bold")
    if len(report.subjects) == 1 and report.subjects[0].headline:
        line.append(f", {neutral(report.subjects[0].headline)}")
    line.append(f": {wording.counts_phrase(wording.concerning(report.subjects))}{silenced}")
    line.append(f" ({wording.cost_phrase(report)})", style="dim")
    console.print(line, soft_wrap=True)


def _body(console: Console, report: Report, verbose: int) -> None:
    """Of many subjects those that do not pass come first, then the table of all, then what else is worth a word.

    A report with its own overview has that behind the subjects that have findings. Where there are answers, the
    findings of many subjects are grouped by their causes.
    """
    shown = report.subjects
    if report.answers and not verbose and (report.overview or len(shown) > wording.MANY):
        _causes(console, report)
        if report.overview:
            _own_overview(console, report.overview)
        else:
            console.print()
            console.print(_overview(report))
        _left_out(console, report)
        return
    if report.overview:
        told = [subject for subject in shown if subject.kind not in report.overview.summed_up or verbose]
        _subjects(console, [subject for subject in told if verbose or wording.problems(subject)], verbose)
        _own_overview(console, report.overview)
        if report.answers:
            console.print()
            console.print(_overview(report))
        return
    if len(shown) > wording.MANY:
        worst = [subject for subject in shown if report.verdict_of(subject) is not Verdict.PASS]
        _subjects(console, worst, verbose)
        console.print()
        console.print(_overview(report))
        shown = tuple(s for s in shown if s not in worst and (verbose or wording.problems(s)))
    _subjects(console, shown, verbose)
    if not verbose:
        _left_out(console, report)


def _causes(console: Console, report: Report) -> None:
    """What decides, worst first, each cause once, in at most ``_LINES`` lines with the statements that follow."""
    statements = report.overview.statements if report.overview else ()
    left = _LINES - len(statements)
    is_host = all(subject.kind == "host" for subject in report.subjects)  # the second line says which one
    every = causes(problems_of(report))
    found = [cause for cause in every if not cause.is_note]
    if every or statements:
        console.print()
    for number, cause in enumerate(found):
        result = cause.shown
        evidence = result.evidence
        if evidence == cause.first.evidence:
            evidence = tuple(item for item in evidence if item.value not in result.message)[:_EVIDENCE]
        fix = wording.fix_lines(result.fix) if result.fix else []
        left -= 1 + len(evidence) + bool(result.fix) + len(fix)
        if left < 0 and number:
            console.print(Text(f"  and {plural(len(found) - number, 'more finding')}; -v shows all", style="dim"))
            break
        _problem(console, replace(result, evidence=evidence), about="" if is_host else cause.about)
    if notes := len(every) - len(found):
        console.print(Text(f"  {plural(notes, 'note')}: -v shows {'it' if notes == 1 else 'them'}", style="dim"))


def _left_out(console: Console, report: Report) -> None:
    if phrase := wording.publisher_phrase(report):
        console.print()
        console.print(Text(f"{phrase}: -v shows them", style="dim"), soft_wrap=True)


def _subjects(console: Console, subjects: Iterable[Subject], verbose: int) -> None:
    for subject in subjects:
        console.print()
        _subject(console, subject, verbose)


def _own_overview(console: Console, overview: Overview) -> None:
    for statement in overview.statements:
        console.print(Text(f"  {neutral(statement)}"), soft_wrap=True)
    for data in overview.tables:
        table = _table()
        for column in data.columns:
            justify: JustifyMethod = "right" if column in data.numbers else "left"
            table.add_column(Text(neutral(column)), justify=justify, overflow="fold")
        for row in data.rows:
            table.add_row(*(_folded(cell) for cell in row))
        console.print()
        console.print(Text(neutral(data.title), style="bold"), soft_wrap=True)
        console.print(table)
    if overview.notes:
        console.print()
    for note in overview.notes:
        console.print(Text(neutral(note)), soft_wrap=True)


def _table() -> Table:
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def _overview(report: Report) -> Table:
    table = _table()
    table.add_column("file", overflow="fold")
    table.add_column("version", overflow="fold")
    table.add_column("accelerator", overflow="fold")
    table.add_column("size", justify="right", overflow="fold")
    gpus = [wording.gpu_label(subject) for subject in report.subjects]
    if any(gpus):
        table.add_column("GPUs", overflow="fold")
    indexes = [wording.fact(subject, "index") for subject in report.subjects]
    several = len(set(filter(None, indexes))) > 1
    if several:
        table.add_column("index", overflow="fold")
    table.add_column("verdict", overflow="fold")
    for subject, runs, index in zip(report.subjects, gpus, indexes, strict=True):
        verdict = report.verdict_of(subject)
        table.add_row(
            Text(neutral(subject.id)),
            Text(wording.fact(subject, "version")),
            Text(wording.accelerator_label(subject)),
            wording.size_label(subject),
            *([Text(runs)] if any(gpus) else []),
            *([Text(index)] if several else []),
            Text(verdict.value.upper(), style=_VERDICT_STYLES[verdict]),
        )
    return table


def _subject(console: Console, subject: Subject, verbose: int) -> None:
    console.print(Text(neutral(subject.id), style="bold"), soft_wrap=True)
    if subject.headline:
        console.print(Padding(Text(neutral(subject.headline), overflow="fold"), (0, 0, 0, 2)))
    for line in filter(None, (*wording.gpu_lines(subject), wording.archive_line(subject))):
        console.print(Padding(Text(line, overflow="fold"), (0, 0, 0, 2)))
    for cause in causes((subject, result) for result in wording.problems(subject, everything=verbose > 0)):
        _problem(console, cause.shown, for_others=not subject.concerns_reader(cause.first))
    others = wording.worst_first(r for r in subject.results if r.outcome in (Outcome.SKIP, Outcome.PASS))
    if verbose and others:
        table = _grid(3)
        for result in others:
            label = wording.label_of(result)
            style = _LABEL_STYLES.get(label, "dim")
            table.add_row(Text(label, style=style), Text(neutral(result.rule)), _folded(result.message))
        console.print(Padding(table, (0, 0, 0, 2)))
    elif others:
        console.print(Text(f"  {wording.counts_phrase(others)}", style="dim"))
    if verbose > 1:
        table = _grid(2)
        for name, value in wording.flat_facts(subject.facts):
            table.add_row(Text(f"{name}:", style="dim"), _folded(value))
        console.print(Padding(table, (0, 0, 0, 2)))


def _problem(console: Console, result: CheckResult, about: str = "", *, for_others: bool = False) -> None:
    label = wording.label_of(result)
    table = _grid(3)
    names_it = not about or result.message.startswith(about)
    message = _folded(result.message if names_it else f"{about}: {result.message}")
    if for_others:
        message.append("  for the publisher", style="dim")
    place = wording.place_of(result)
    if place and place not in result.message:
        message.append(f"  {place}", style="dim")
    table.add_row(Text(label, style=_LABEL_STYLES[label]), Text(neutral(result.rule)), message)
    console.print(Padding(table, (0, 0, 0, 2)))
    if result.evidence:
        table = _grid(2)
        for evidence in result.evidence:
            value = _folded(evidence.value)
            if evidence.source:
                value.append(f"  {neutral(evidence.source)}", style="dim")
            table.add_row(Text(f"{neutral(evidence.label)}:"), value)
        console.print(Padding(table, (0, 0, 0, 6)))
    if result.fix:
        console.print(Padding(_folded(f"fix: {result.fix.summary}"), (0, 0, 0, 6)))
        for line, for_shell in wording.fix_lines(result.fix):
            console.print(Text(f"        {line}", style="green" if for_shell else ""), soft_wrap=True)


def _folded(text: str) -> Text:
    return Text(neutral(text), overflow="fold")


def _grid(columns: int) -> Table:
    """Columns without lines; every column but the last keeps its width."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for index in range(columns):
        table.add_column(no_wrap=index < columns - 1, overflow="fold")
    return table
