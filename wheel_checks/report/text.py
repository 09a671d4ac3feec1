"""The report for people at a terminal or in a log: on a screen as much as it holds, else all of it."""

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TextIO

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from wheel_checks.model import Outcome, Overview, Report, Subject, Table, Verdict
from wheel_checks.phrases import plural
from wheel_checks.report import wording
from wheel_checks.report.causes import causes, problems_of
from wheel_checks.report.links import is_screen
from wheel_checks.report.screen import first_screen, rows_of
from wheel_checks.report.terminal import (
    LABEL_STYLES,
    ReportConsole,
    answers,
    captured,
    console_for,
    folded,
    grid,
    indented,
    own_table,
    problem,
    prose,
    rule_id,
    subjects_table,
    verdict,
)

_LINES = 18  # of findings and statements, below the answer and the verdict, in a log
_EVIDENCE = 3  # values that are shown of each cause
_SMALLEST = 24  # lines of a terminal


def render(
    report: Report,
    stream: TextIO,
    *,
    color: bool | None = None,
    width: int | None = None,
    quiet: bool = False,
    verbose: int = 0,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    above: int = 0,
) -> None:
    """Write the report for people: the answers, the verdict, then what is wrong, the evidence, and the fix.

    ``color`` None means: when ``stream`` is a terminal and NO_COLOR is unset or empty. ``width`` None means the
    terminal's own; elsewhere lines are not wrapped, so that a log can be searched. ``quiet`` leaves the answers and
    the verdict line; ``verbose`` 1 adds skipped and passed checks and all findings, 2 the facts. ``before`` goes in
    place of the answers, ``after`` behind the report; ``above`` lines have been written to the terminal already. On a
    screen that is too small for all of it the worst is shown, and what ``verbose`` adds is counted.
    """
    console = console_for(stream, color=color, width=width)
    with captured(console) as lines:
        answers(console, report, before)
        verdict(console, report)
        if not quiet:
            _body(console, report, verbose)
    if not quiet:
        lines += after
    if not quiet and not verbose and is_screen(stream):
        room = (
            max(shutil.get_terminal_size().lines, _SMALLEST) - 1 - min(above, _SMALLEST // 3)
        )  # a line for the prompt
        if rows_of(lines, console.width) > room:
            lines = first_screen(console, report, room, before, after)
    wording.write(stream, "".join(f"{line}\n" for line in lines))


def render_table(table: Table, stream: TextIO) -> None:
    """Write a table by itself, folded to the width of the terminal."""
    console = console_for(stream)
    with captured(console) as lines:
        own_table(console, table)
    wording.write(stream, "".join(f"{line}\n" for line in lines))


def _body(console: ReportConsole, report: Report, verbose: int) -> None:
    """Of many subjects those that do not pass come first, then the table of all, then what else is worth a word.

    A report with its own overview has that after the subjects that have findings. Where there are answers, the
    findings of many subjects are grouped by their causes.
    """
    shown = report.subjects
    if report.answers and not verbose and (report.overview or len(shown) > wording.MANY):
        _causes(console, report)
        if report.overview:
            _own_overview(console, report.overview)
        else:
            console.print()
            console.print(subjects_table(report, shown))
        _left_out(console, report)
        return
    if report.overview:
        listed = [subject for subject in shown if subject.kind not in report.overview.summed_up or verbose]
        _subjects(console, [subject for subject in listed if verbose or wording.problems(subject)], verbose)
        _own_overview(console, report.overview)
        if report.answers:
            console.print()
            console.print(subjects_table(report, shown))
        return
    if len(shown) > wording.MANY:
        worst = [subject for subject in shown if report.verdict_of(subject) is not Verdict.PASS]
        _subjects(console, worst, verbose)
        console.print()
        console.print(subjects_table(report, shown))
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
        problem(console, replace(result, evidence=evidence), about="" if is_host else cause.about)
    if notes := len(every) - len(found):
        console.print(Text(f"  {plural(notes, 'note')}: -v shows {'it' if notes == 1 else 'them'}", style="dim"))


def _left_out(console: Console, report: Report) -> None:
    if phrase := wording.publisher_phrase(report):
        console.print()
        prose(console, f"{phrase}: -v shows them", style="dim")


def _subjects(console: Console, subjects: Iterable[Subject], verbose: int) -> None:
    for subject in subjects:
        console.print()
        _subject(console, subject, verbose)


def _own_overview(console: Console, overview: Overview) -> None:
    for statement in overview.statements:
        indented(console, statement)
    for data in overview.tables:
        console.print()
        own_table(console, data)
    if overview.notes:
        console.print()
    for note in overview.notes:
        prose(console, note)


def _subject(console: Console, subject: Subject, verbose: int) -> None:
    prose(console, subject.id, style="bold")
    for line in filter(None, (subject.headline, *wording.gpu_lines(subject), wording.archive_line(subject))):
        indented(console, line)
    for cause in causes((subject, result) for result in wording.problems(subject, everything=verbose > 0)):
        problem(console, cause.shown, for_others=not subject.concerns_reader(cause.first))
    others = wording.worst_first(r for r in subject.results if r.outcome in (Outcome.SKIP, Outcome.PASS))
    if verbose and others:
        table = grid(3)
        for result in others:
            label = wording.label_of(result)
            style = LABEL_STYLES.get(label, "dim")
            table.add_row(Text(label, style=style), rule_id(console, result.rule), folded(result.message))
        console.print(Padding(table, (0, 0, 0, 2)))
    elif others:
        console.print(Text(f"  {wording.counts_phrase(others)}", style="dim"))
    if verbose > 1:
        table = grid(2)
        for name, value in wording.flat_facts(subject.facts):
            table.add_row(Text(f"{name}:", style="dim"), folded(value))
        console.print(Padding(table, (0, 0, 0, 2)))
