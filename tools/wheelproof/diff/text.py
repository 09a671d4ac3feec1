"""The table of a difference for people at a terminal or in a log; imported only when it is wanted, as rich is."""

from collections.abc import Iterable
from typing import TextIO

from rich.table import Table as RichTable
from rich.text import Text

from wheel_checks.phrases import and_more, shortened
from wheel_checks.report.terminal import captured, console_for, prose
from wheel_checks.report.wording import neutral
from wheelproof.diff.rows import Table

_LONGEST = 120  # characters of a cell: in a log lines are not folded, and the json format has everything


def table_lines(
    tables: Iterable[tuple[str, Table]], stream: TextIO, *, color: bool | None = None, width: int | None = None
) -> list[str]:
    """Each table under its title, for ``stream``: the name of what differs, what A has, what B has.

    ``color`` None means: when ``stream`` is a terminal and NO_COLOR is unset; ``width`` None the terminal's own.
    """
    console = console_for(stream, color=color, width=width)
    with captured(console) as lines:
        for title, table in tables:
            console.print()
            prose(console, title, style="bold")
            console.print(_grid(table))
            if table.same:
                prose(console, f"  same on both sides: {table.same}", style="dim")
            for sentence in table.not_compared:
                prose(console, f"  not compared: {sentence}", style="yellow")
    return lines


def _grid(table: Table) -> RichTable:
    grid = RichTable(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for heading in ("", *table.columns):
        grid.add_column(Text(neutral(heading)), overflow="fold")
    for section in table.sections:
        grid.add_row(Text(f"  {section.title}", style="bold cyan"))
        for row in section.rows:
            note = f"  {neutral(row.note)}" if row.note else ""
            name = Text(f"    {_cell(row.name)}").append(note, style="dim")
            grid.add_row(name, Text(_cell(row.a)), Text(_cell(row.b)))
        if section.hidden:
            grid.add_row(Text(f"    {and_more(section.hidden, before='')} (-v lists all)", style="dim"))
    if not table.sections:
        grid.add_row(Text("  nothing differs", style="green"))
    return grid


def _cell(text: str) -> str:
    return shortened(neutral(text), _LONGEST)
