"""Shared by the charts of the documentation: their width, and a grid of cells with their states as words or signs.

A chart is as wide as the column of a page, and its smallest text is still readable on a telephone of 390 px.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.svg import box, picture_of, text

DOCS = Path(__file__).resolve().parents[2] / "docs"
WIDTH = 560.0
MARGIN = 16.0
SIZE = 16  # of all text but headings
BARS = WIDTH - 2 * MARGIN - 64  # width for bars; their texts follow
LONGEST = 46  # characters of the label of a bar
_WIDE = 0.6  # of the size: how wide a character is at most, on average


class Look(NamedTuple):
    """How a state looks: the colour of its cell, the colour of its text, and its legend."""

    fill: str
    ink: str
    meaning: str


def chart(title: str, about: Sequence[str], body: Sequence[str], bottom: float, description: str) -> str:
    """The document: a heading, a description in lines below it, and the body, which begins at ``top(about)``."""
    lines = [text(MARGIN, 34, title, size=20, bold=True)]
    lines += [text(MARGIN, 60 + 22 * n, line, size=SIZE, style="quiet") for n, line in enumerate(about)]
    return picture_of(WIDTH, bottom, title, description, [*lines, *body])


def top(about: Sequence[str]) -> float:
    """The y position below the heading and these lines."""
    return 60 + 22 * len(about)


def grid(
    rows: Mapping[str, Sequence[tuple[str, str]]],
    looks: Mapping[str, Look],
    *,
    left: float,
    y: float,
    cell: tuple[float, float],
    headings: Sequence[str] = (),
) -> tuple[list[str], float]:
    """Cells by row, each ``(state, its text)``, right of the names of the rows; and where the grid ends.

    A cell without a state is empty.
    """
    width, height = cell
    elements = [
        text(left + width * (n + 0.5), y + 14, name, size=SIZE, anchor="middle", style="quiet")
        for n, name in enumerate(headings)
    ]
    y += 24 if headings else 0
    for name, cells in rows.items():
        elements.append(text(left - 8, y + height / 2 + 5.5, name, size=SIZE, anchor="end"))
        for column, (state, value) in enumerate(cells):
            x = left + width * column
            if state:
                elements.append(box(x + 1, y + 1, width - 2, height - 2, looks[state].fill))
                middle = (x + width / 2, y + height / 2 + 5.5)
                elements.append(text(*middle, value, size=SIZE, anchor="middle", style=looks[state].ink))
        y += height
    return elements, y


def legend(entries: Sequence[tuple[Look, str]], y: float) -> tuple[list[str], float]:
    """A sample of each look with its sign and its meaning, in as many lines as it takes; and where it ends."""
    elements: list[str] = []
    x = MARGIN
    for look, value in entries:
        length = 36 + _WIDE * SIZE * len(look.meaning) + 14
        if x + length > WIDTH and x > MARGIN:
            x, y = MARGIN, y + 30
        sample = 28.0
        elements += [
            box(x, y, sample, 22, look.fill),
            text(x + sample / 2, y + 16.5, value, size=SIZE, anchor="middle", style=look.ink),
            text(x + sample + 8, y + 16.5, look.meaning, size=SIZE, style="quiet"),
        ]
        x += length
    return elements, y + 36


def bar(label: str, share: float, value: str, y: float, *, track: float = 1.0, style: str = "fair") -> list[str]:
    """A bar with its label inside and a text at the end; ``share`` and ``track`` are parts of the width."""
    label = label if len(label) <= LONGEST else f"{label[: LONGEST - 1]}…"
    return [
        box(MARGIN, y, BARS * track, 26, "track"),
        box(MARGIN, y, BARS * share, 26, style),
        text(MARGIN + 8, y + 18.5, label, size=SIZE),
        text(WIDTH - MARGIN, y + 18.5, value, size=SIZE, anchor="end", bold=True),
    ]


class Measured(NamedTuple):
    """A page of benchmarks, and the date, the GPU and the first version of software of its figures."""

    page: str
    date: str
    gpu: str
    software: str


def measured(table: str) -> Measured:
    """The page that has a table with this line of headings, and the nearest line above it that begins with a date."""
    pages = (path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("benchmarks/*.md")))
    page = next(page for page in pages if table in page)
    lines = re.findall(r"^(\d{4}-\d\d-\d\d) · ([^,·]+)[^·]*· ([^·,]*)", page.partition(table)[0], re.MULTILINE)
    date, gpu, software = lines[-1]
    return Measured(page, date, gpu.strip(), software.strip())


def table_in(page: str, *headings: str) -> Iterator[dict[str, str]]:
    """The rows of the first table of a page in Markdown whose first columns have these headings, by heading."""
    lines = iter(page.splitlines())
    head: list[str] = []
    for line in lines:
        if line.startswith("| ") and (names := _cells(line))[: len(headings)] == list(headings):
            head = names
            next(lines)
            break
    for line in lines:
        if not line.startswith("| "):
            return
        yield dict(zip(head, _cells(line), strict=True))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip().strip("|").split("|")]
