"""Shell scripts, batch files, Makefiles and justfiles: text whose commands stand where they are."""

from __future__ import annotations

import re

from wheelproof.pins.documents.commands.dockerfile import dockerfile_scripts
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.lexer import Dialect
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.commands.shell import assigned
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document

_DOCKERFILE = re.compile(r"(.*\.)?(docker|container)file([._-].*)?", re.IGNORECASE)
_INSTRUCTION = re.compile(r"(?:[ \t]*(?:#.*)?\r?\n)*[ \t]*(?:FROM|RUN|ARG)[ \t]+\S")
_MAKEFILE = re.compile(r"(gnu)?makefile([._-].*)?|.*\.mk|justfile|\.justfile|.*\.just", re.IGNORECASE)
_DIALECTS = {".bat": Dialect.CMD, ".cmd": Dialect.CMD, ".ps1": Dialect.POWERSHELL}
_DEFINITION = re.compile(r"(?:export\s+|override\s+)*([\w.-]+)\s*(\?|:{1,3}|\+|!)?=[ \t]*(.*)", re.ASCII)
_RECIPE = re.compile(r"[ \t]+[@+-]*[ \t]*")
_NOT_NEWLINE = re.compile(r"[^\r\n]")
_ONE_LINE_RULE = re.compile(r"[^\s#=:][^#=:]*::?[^=;#]*;[ \t]*[@+-]*")


def read(source: Source) -> Document:
    """The installations of a script, whatever kind its name says."""
    name = source.path.name
    if _DOCKERFILE.fullmatch(name) or (not source.path.suffix and _INSTRUCTION.match(source.text)):
        return document(source, "commands", of_scripts(dockerfile_scripts(source.text)))
    if _MAKEFILE.fullmatch(name):
        return document(source, "commands", of_scripts([makefile_script(source.text)]))
    dialect = _DIALECTS.get(source.path.suffix.lower(), Dialect.SH)
    return document(source, "commands", of_scripts([Piece(source.text, dialect=dialect)]))


def makefile_script(text: str) -> Piece:
    """The recipes, all else blank, with the variables that are defined."""
    variables: dict[str, tuple[str, ...]] = {}
    kept: list[str] = []
    continued = recipe = False
    for line in text.splitlines(keepends=True):
        if not continued:
            lead = _RECIPE.match(line)
            recipe = lead is not None and bool(line.strip())
            rule = None if recipe else _ONE_LINE_RULE.match(line)
            if recipe and lead:
                line_kept = " " * lead.end() + line[lead.end() :]
            elif rule:
                line_kept = " " * rule.end() + line[rule.end() :]
                recipe = True
            else:
                line_kept = _NOT_NEWLINE.sub(" ", line)
                if match := _DEFINITION.match(line):
                    value = match[3].partition(" #")[0].strip().strip("\"'")
                    before = variables.get(match[1], ())
                    quoted = value.replace("\\", "\\\\").replace('"', '\\"')
                    known = assigned(f'X="{quoted}"', variables, Dialect.MAKE).get("X", (value,))[0]
                    if match[2] == "+" and before:
                        known = f"{before[-1]} {known}"
                        before = ()
                    variables[match[1]] = tuple(dict.fromkeys((*before, known)))
        else:
            line_kept = line if recipe else _NOT_NEWLINE.sub(" ", line)
        continued = line.rstrip("\r\n").endswith("\\")
        kept.append(line_kept)
    return Piece("".join(kept), variables=variables, dialect=Dialect.MAKE)
