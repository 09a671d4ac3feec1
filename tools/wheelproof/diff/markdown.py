"""The table of a difference in GitHub's Markdown, to follow the report."""

import html
import re
from collections.abc import Iterable
from typing import TextIO

from wheel_checks.phrases import and_more, shortened
from wheel_checks.report import wording
from wheel_checks.report.wording import neutral
from wheelproof.diff.rows import Section, Table

LIMIT = 200_000
"""Characters of all tables together: with the report they must fit into a job summary of 1 MiB."""

_LONGEST = 300  # characters of a cell
_SPECIAL = re.compile(r"([\\`*{}\[\]#|~!@$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])|:(?=//))")


def render_tables(tables: Iterable[tuple[str, Table]], stream: TextIO) -> None:
    """Write each table under a heading; what would pass ``LIMIT`` is omitted, and a sentence says so."""
    left = LIMIT
    for title, table in tables:
        text = f"\n### {_text(title)}\n\n{_body(table)}"
        left -= len(text)
        if left < 0:
            wording.write(stream, "\nFurther tables did not fit; the json format has everything.\n")
            return
        wording.write(stream, text)


def _body(table: Table) -> str:
    head = ["differs", *map(_text, table.columns)]
    rows = [row for section in table.sections for row in _rows(section)]
    text = (
        "".join(f"| {' | '.join(cells)} |\n" for cells in (head, ["---"] * 3, *rows)) if rows else "Nothing differs.\n"
    )
    if table.same:
        text += f"\nSame on both sides: {_text(table.same)}.\n"
    return text + "".join(f"\nNot compared: {_text(sentence)}.\n" for sentence in table.not_compared)


def _rows(section: Section) -> Iterable[list[str]]:
    yield [f"**{_text(section.title)}**", "", ""]
    for row in section.rows:
        note = f" ({_text(row.note)})" if row.note else ""
        yield [_text(row.name) + note, _text(row.a), _text(row.b)]
    if section.hidden:
        yield [and_more(section.hidden, before=""), "", ""]


def _text(text: str) -> str:
    """Prose in which nothing is markup: HTML as entities, Markdown's own characters after a backslash."""
    return _SPECIAL.sub(r"\\\1", html.escape(shortened(neutral(text), _LONGEST), quote=False))
