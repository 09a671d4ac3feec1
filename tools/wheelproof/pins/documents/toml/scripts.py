"""The commands in a TOML document: scripts of hatch and pdm, tasks of pixi and poe, cibuildwheel's hooks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from wheel_checks.formats.toml_spans import Kind, Statement, Value, scan
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.model import Document, KeyPath, Source

_INSTALLS = re.compile(r"\b(?:pip[\d.]*|uv|conda|mamba|poetry|pdm|pixi)\s+(?:\S+\s+)*?(?:install|add|sync|run)\b")
_RUN = re.compile(r"(?:scripts?|tasks?|cmd|commands?|before-.*|repair-.*|test-command|shell|sequence)$")


def with_scripts(source: Source, own: Document) -> Document:
    """The document with the installs of its scripts, which are never rewritten."""
    found = document(source, own.kind, of_scripts(_pieces(own.layout)))
    if not found.commands:
        return own
    return replace(
        own,
        requirements=(*own.requirements, *found.requirements),
        notices=(*own.notices, *found.notices),
        includes=(*own.includes, *found.includes),
        constraint_files=(*own.constraint_files, *found.constraint_files),
        commands=found.commands,
    )


def _pieces(text: str) -> Iterator[Piece]:
    for entry in scan(text) if _INSTALLS.search(text) else ():
        if isinstance(entry, Statement):
            yield from _of_value(entry.path, entry.value)


def _of_value(path: KeyPath, value: Value) -> Iterator[Piece]:
    """The texts of a value that are run, by the keys that lead to them."""
    for key, member in value.members:
        yield from _of_value((*path, *key), member)
    runs = any(isinstance(part, str) and _RUN.match(part) for part in path[1:] if path[0] in ("tool", "envs")) or (
        isinstance(path[0], str) and _RUN.match(path[0]) is not None
    )
    if runs and value.kind is Kind.STRING and _INSTALLS.search(value.text):
        yield Piece(value.text, ((0, value.start + 1),))
