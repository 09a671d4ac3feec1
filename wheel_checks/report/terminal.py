"""Parts of the reports for a terminal: the console, folded prose, findings, tables. It imports rich."""

from __future__ import annotations

import io
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TextIO

from rich.console import Console, JustifyMethod
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from wheel_checks import model
from wheel_checks.model import CheckResult, Report, Subject, Verdict
from wheel_checks.registry import registered
from wheel_checks.report import wording
from wheel_checks.report.folding import fold, unbroken, with_spaces
from wheel_checks.report.links import shows_links
from wheel_checks.report.pages import page_of
from wheel_checks.report.wording import neutral

VERDICT_STYLES = {Verdict.PASS: "bold green", Verdict.FAIL: "bold red", Verdict.UNDECIDED: "bold yellow"}
LABEL_STYLES = {
    "error": "bold red",
    "warning": "yellow",
    "note": "cyan",
    "not checked": "bold magenta",
    "passed": "green",
}
_UNLIMITED = 100_000
LABEL = 26  # columns of the label of evidence that leave its value enough on a narrow terminal


class ReportConsole(Console):
    """A console whose output is captured; ``links`` says whether ids of rules lead to their pages."""

    links = False

    @property
    def is_folded(self) -> bool:
        """True if lines have a width: not in a log, which is searched."""
        return self.width < _UNLIMITED


def console_for(stream: TextIO, *, color: bool | None = None, width: int | None = None) -> ReportConsole:
    """A console whose output is captured and then written to ``stream``; see ``render`` for the options."""
    terminal = stream.isatty()
    if color is None:
        color = terminal and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if width is None:
        width = shutil.get_terminal_size().columns if terminal else _UNLIMITED
    console = ReportConsole(
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
    console.links = color and shows_links(stream)
    return console


@contextmanager
def captured(console: Console) -> Iterator[list[str]]:
    """The lines that are printed inside of the ``with`` block, once it has ended."""
    lines: list[str] = []
    with console.capture() as capture:
        yield lines
    # Columns are padded to their width; a log does not need that.
    lines += [line.rstrip() for line in with_spaces(capture.get()).split("\n")[:-1]]


def folded(text: str) -> Text:
    """Safe text that is folded between words, and not inside a command that fits on a line."""
    return Text(unbroken(neutral(text)), overflow="fold")


def prose(console: Console, text: str, *, style: str = "") -> None:
    """A safe sentence, folded to the width; a command that is longer than that has a line for itself."""
    for line in fold(neutral(text), console.width):
        console.print(Text(line, style=style), soft_wrap=True)


def indented(console: Console, text: str, columns: int = 2, *, style: str = "") -> None:
    """A safe sentence after so many blanks."""
    line = folded(text)
    line.stylize(style)
    console.print(Padding(line, (0, 0, 0, columns)))


def answers(console: Console, report: Report, instead: Sequence[str] = (), most: int | None = None) -> int:
    """The lines of the answers or others ``instead``, ``most`` of them; returns the number of omitted ones."""
    lines = instead or wording.answer_lines(report)
    for line in lines[:most]:
        prose(console, line, style="" if instead else VERDICT_STYLES[report.verdict])
    return max(len(lines) - len(lines[:most]), 0)


def verdict(console: Console, report: Report) -> None:
    """``FAIL``, the judged object, the counts, the cost."""
    line = Text()
    line.append(report.verdict.value.upper(), style=VERDICT_STYLES[report.verdict])
    silenced = f", {phrase}" if (phrase := wording.silenced_phrase(report)) else ""
    counts = wording.counts_phrase(wording.concerning(report.subjects))
    line.append(f"  {wording.judged_phrase(report)}", style="bold")
    if report.overview:
        line.append((f": {counts}" if report.answers else "") + silenced)
    else:
        if len(report.subjects) == 1 and report.subjects[0].headline:
            line.append(f", {neutral(report.subjects[0].headline)}")
        line.append(f": {counts}{silenced}")
    line.append(f" ({wording.cost_phrase(report)})", style="dim")
    console.print(line, overflow="fold")
    if also := wording.also_line(report):
        prose(console, also)


def rule_id(console: Console, identity: str) -> Text:
    """The id of a rule; with a link to its page if the terminal opens links. A plug-in's rule has none here."""
    text = Text(neutral(identity))
    if isinstance(console, ReportConsole) and console.links:
        ours = any(rule.id == identity and not rule.plugin for rule in registered())
        if page := page_of(identity) if ours else "":
            text.stylize(Style(link=page))
    return text


def problem(
    console: Console, result: CheckResult, about: str = "", *, for_others: bool = False, brief: bool = False
) -> None:
    """A finding: its message with the evidence and the fix, or with ``brief`` alone."""
    label = wording.label_of(result)
    table = grid(3)
    place = wording.place_of(result)
    if about and place.startswith(f"{neutral(about)}:"):
        about = place
    names_it = not about or result.message.startswith(about)
    message = folded(result.message if names_it else f"{about}: {result.message}")
    if for_others:
        message.append("  for the publisher", style="dim")
    if place and place != about and place not in result.message:
        message.append(f"  {place}", style="dim")
    table.add_row(Text(label, style=LABEL_STYLES[label]), rule_id(console, result.rule), message)
    console.print(Padding(table, (0, 0, 0, 2)))
    if not brief:
        evidence(console, result)
        fix(console, result)


def evidence(console: ReportConsole | Console, result: CheckResult) -> None:
    """Each value after its label; if a label would take the width, all values are below theirs."""
    is_folded = isinstance(console, ReportConsole) and console.is_folded
    below = is_folded and any(len(neutral(item.label)) > LABEL for item in result.evidence)
    table = grid(2)
    for item in result.evidence:
        label, value = f"{neutral(item.label)}:", folded(item.value)
        if item.source:
            value.append(f"  {neutral(item.source)}", style="dim")
        if below:
            indented(console, label, 6)
            value = value[len(item.label) + 1 :] if item.value.startswith(f"{item.label} ") else value
            console.print(Padding(value, (0, 0, 0, 8)))
        else:
            table.add_row(Text(label), value)
    if result.evidence and not below:
        console.print(Padding(table, (0, 0, 0, 6)))


def fix(console: Console, result: CheckResult) -> None:
    """The fix in a sentence, and its commands, which are never folded, so that they can be copied as one line."""
    if result.fix:
        indented(console, f"fix: {result.fix.summary}", 6)
        for line, for_shell in wording.fix_lines(result.fix):
            console.print(Text(f"        {line}", style="green" if for_shell else ""), soft_wrap=True)


def plain_table() -> Table:
    """A table without lines."""
    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")


def own_table(console: Console, data: model.Table) -> None:
    """A table of an overview under its title."""
    table = plain_table()
    for column in data.columns:
        justify: JustifyMethod = "right" if column in data.numbers else "left"
        table.add_column(Text(neutral(column)), justify=justify, overflow="fold")
    for row in data.rows:
        table.add_row(*map(folded, row))
    prose(console, data.title, style="bold")
    console.print(table)


def subjects_table(report: Report, subjects: Sequence[Subject]) -> Table:
    """Each of these subjects with its verdict, in the columns that say something of one."""
    columns = {
        "file": [neutral(subject.id) for subject in subjects],
        "version": [wording.fact(subject, "version") for subject in subjects],
        "accelerator": [wording.accelerator_label(subject) for subject in subjects],
        "size": [wording.size_label(subject) for subject in subjects],
        "GPUs": [wording.gpu_label(subject) for subject in subjects],
        "index": [wording.fact(subject, "index") for subject in subjects],
    }
    if len(set(filter(None, columns["index"]))) <= 1:
        del columns["index"]
    columns = {name: cells for name, cells in columns.items() if any(cells)}
    table = plain_table()
    for name in columns:
        table.add_column(name, justify="right" if name == "size" else "left", overflow="fold")
    table.add_column("verdict", no_wrap=True)
    for subject, *cells in zip(subjects, *columns.values(), strict=True):
        decided = report.verdict_of(subject)
        table.add_row(*map(Text, cells), Text(decided.value.upper(), style=VERDICT_STYLES[decided]))
    return table


def grid(columns: int) -> Table:
    """Columns without lines; every column but the last keeps its width."""
    table = Table.grid(padding=(0, 2, 0, 0))
    for index in range(columns):
        table.add_column(no_wrap=index < columns - 1, overflow="fold")
    return table
