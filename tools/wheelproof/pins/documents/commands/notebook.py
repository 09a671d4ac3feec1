"""Notebooks: the lines of code cells that a shell or a magic runs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document

_CELL_SHELL = re.compile(r"\s*%%(?:bash|sh|shell|script\s+(?:ba)?sh|system|sx|!)\b.*")
_LINE = re.compile(
    r"([ \t]*)(!!?|%(?:sx|system|!)?[ \t]*(?=(?:pip|conda|mamba|micromamba|uv|sx|system)\b)"
    r"|(?=(?:pip|conda|mamba|uv)[ \t]+(?:install|pip|add)\b))"
)
_PYTHON_VALUE = re.compile(r"\{[^{}\n]*\}")
_ASSIGNED = re.compile(r"[ \t]*[A-Za-z_]\w*[ \t]*=[ \t]*(?=!)", re.ASCII)


def read(source: Source) -> Document:
    """The installations of a notebook. Raises FormatError when it is no JSON."""
    return document(source, "notebook", of_scripts(_scripts(source)))


def _scripts(source: Source) -> Iterator[Piece]:
    try:
        notebook: Any = json.loads(source.text)
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source.path} is no notebook: {str(error)[:200]}") from None
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


def _find(text: str, line: str, at: int) -> int:
    """Where a line of a cell stands in the JSON, at ``at`` or behind it; -1 when its escapes are others."""
    if not line.strip():
        return -1
    for ascii_only in (False, True):
        found = text.find(json.dumps(line, ensure_ascii=ascii_only)[1:-1], at)
        if found >= 0:
            return found
    return -1


def cell_script(text: str, anchors: list[tuple[int, int]]) -> tuple[str, tuple[tuple[int, int], ...]]:
    """What a shell runs of a cell, all else blank; and where its lines stand, which keep their offsets."""
    if _CELL_SHELL.match(text):
        first, newline, rest = text.partition("\n")
        return " " * len(first) + newline + rest, tuple(anchors)
    kept: list[str] = []
    continued = False
    for line in text.splitlines(keepends=True):
        match = _LINE.match(line)
        assigned = _ASSIGNED.match(line)
        if continued:
            shown = line
        elif assigned:
            shown = " " * (assigned.end() + 1) + line[assigned.end() + 1 :]
        elif match:
            shown = " " * match.end() + line[match.end() :]
        else:
            shown = re.sub(r"[^\r\n]", " ", line)
        runs = continued or match is not None or assigned is not None
        if runs:
            shown = _PYTHON_VALUE.sub(lambda found: "$" + "_" * (len(found[0]) - 1), shown)
        kept.append(shown)
        continued = runs and line.rstrip().endswith("\\") and not shown.lstrip().startswith("#")
    return "".join(kept), tuple(anchors)
