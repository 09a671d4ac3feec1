"""Notebooks: the lines of code cells that a shell or a magic runs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.commands.cells import cell_script
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.markdown import markdown_scripts
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.model import Document, Source


def read(source: Source) -> Document:
    """The installations of a notebook. Raises FormatError when it is not JSON."""
    return document(source, "notebook", of_scripts(_scripts(source)))


def _scripts(source: Source) -> Iterator[Piece]:
    try:
        notebook: Any = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source.path} is not a notebook: {str(error)[:200]}") from None
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if cells is None and isinstance(notebook, dict):  # format 3
        sheets = notebook.get("worksheets")
        cells = (
            [c for sheet in sheets if isinstance(sheet, dict) for c in sheet.get("cells", ())]
            if isinstance(sheets, list)
            else []
        )
    at = 0
    for cell in cells if isinstance(cells, list) else ():
        if not isinstance(cell, dict):
            continue
        lines = cell.get("source", cell.get("input", ""))
        lines = lines.splitlines(keepends=True) if isinstance(lines, str) else lines
        if not isinstance(lines, list) or not all(isinstance(line, str) for line in lines):
            continue
        anchors: list[tuple[int, int]] = []
        offset = 0
        for line in lines:
            found = _find(source.text, line, at)
            at = found if found >= 0 else at
            anchors.append((offset, at))
            offset += len(line)
        if cell.get("cell_type") == "code":
            text, moved = cell_script("".join(lines), anchors)
            yield Piece(text, moved)
        elif cell.get("cell_type") == "markdown":
            for piece in markdown_scripts("".join(lines)):
                start = piece.anchors[0][0] + piece.anchors[0][1]
                within = tuple((max(offset - start, 0), stands) for offset, stands in anchors if offset >= start)
                yield replace(piece, anchors=within or ((0, at),))


def _find(text: str, line: str, at: int) -> int:
    """The position of a cell's line in the JSON, at ``at`` or after it; -1 when its escapes are others."""
    if not line.strip():
        return -1
    for ascii_only in (False, True):
        found = text.find(json.dumps(line, ensure_ascii=ascii_only)[1:-1], at)
        if found >= 0:
            return found
    return -1
