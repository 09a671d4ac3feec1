"""A matrix for people, for programs, and for GitHub Actions."""

import json
from collections.abc import Sequence

from wheel_checks.model import Table
from wheel_checks.phrases import plural
from wheel_checks.report.wording import neutral
from wheelproof.matrix.model import Cell
from wheelproof.matrix.reading import SCHEMA, cell_document

_COLUMNS = ("cell", "torch must be", "smoke", "GPUs", "runner")


def as_text(cells: Sequence[Cell]) -> str:
    """A table with a line for each cell, and the number of cells."""
    rows = [_COLUMNS, *(_row(cell) for cell in cells)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(f"{text:{width}}" for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
    known = [
        f"{cell.id} is known to be {cell.expect.accelerator}: {cell.expect.reason}" for cell in cells if cell.expect
    ]
    return "".join(f"{neutral(line)}\n" for line in [*lines, "", *known, plural(len(cells), "cell")])


def as_table(cells: Sequence[Cell]) -> Table:
    """The same for a screen, which folds it."""
    known = [
        f"{cell.id} is known to be {cell.expect.accelerator}: {cell.expect.reason}" for cell in cells if cell.expect
    ]
    return Table("; ".join([plural(len(cells), "cell"), *known]), _COLUMNS, tuple(map(_row, cells)))


def as_json(cells: Sequence[Cell]) -> str:
    """``wheelproof.matrix/1``: every key of every cell, as ``docs/matrix.md`` describes them."""
    return json.dumps({"schema": SCHEMA, "cells": [cell_document(cell) for cell in cells]}, indent=2) + "\n"


def as_github(cells: Sequence[Cell]) -> str:
    """One line of JSON for ``strategy.matrix``: an entry with the same keys, all of them scalars but ``runner``.

    ``runs-on: ${{ matrix.runner }}`` takes the list of labels; ``id`` is what ``matrix run --only`` takes.
    """
    entries = [
        {
            "id": cell.id,
            "platform": cell.platform,
            "python": cell.python,
            "torch": cell.torch,
            "accelerator": str(cell.accelerator),
            "expect": str(cell.expected),
            "gpu": cell.needs_gpu,
            "runner": list(cell.runner),
            "minutes": max(1, -(-round(cell.deadline) // 60)),
        }
        for cell in cells
    ]
    return json.dumps({"include": entries}, separators=(",", ":")) + "\n"


def _row(cell: Cell) -> tuple[str, ...]:
    known = f" (known: {cell.expect.accelerator})" if cell.expect else ""
    smoke = ", ".join(cell.smoke) or "-"
    return (cell.id, f"{cell.accelerator}{known}", smoke, ", ".join(cell.gpu) or "-", ", ".join(cell.runner) or "-")
