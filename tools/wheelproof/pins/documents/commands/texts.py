"""Dockerfiles, shell scripts, batch files and PowerShell: files whose whole text is commands."""

from __future__ import annotations

import re

from wheelproof.pins.documents.commands.dockerfile import dockerfile_scripts
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.lexer import Dialect
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.model import Document, Source

_DOCKERFILE = re.compile(r"(.*\.)?(docker|container)file([._-].*)?", re.IGNORECASE)
_INSTRUCTION = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*(?:FROM|RUN|ARG)[ \t]+\S")
_DIALECTS = {".bat": Dialect.CMD, ".cmd": Dialect.CMD, ".ps1": Dialect.POWERSHELL}


def read(source: Source) -> Document:
    """The installations of a script, of any kind."""
    name = source.path.name
    if _DOCKERFILE.fullmatch(name) or (not source.path.suffix and _INSTRUCTION.match(source.text)):
        return document(source, "commands", of_scripts(dockerfile_scripts(source.text)))
    dialect = _DIALECTS.get(source.path.suffix.lower(), Dialect.SH)
    return document(source, "commands", of_scripts([Piece(source.text, dialect=dialect)]))
