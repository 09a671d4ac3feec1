"""tox.ini and tox.toml: the ``deps`` of environments, and what their commands install."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from wheel_checks.formats.requirements_lines import setting
from wheelproof.pins.documents.commands.document import document, of_scripts
from wheelproof.pins.documents.commands.lexer import UNKNOWN, Dialect
from wheelproof.pins.documents.commands.piece import Piece
from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.setup_cfg import Line, option_lines, parse
from wheelproof.pins.documents.source import Source
from wheelproof.pins.documents.toml_requirements import Where, parse_toml, read_toml
from wheelproof.pins.model import Document, FoundRequirement, Notice, Place, Role

PLACES = (
    Where("env_run_base.deps", Role.GROUP),
    Where("env_pkg_base.deps", Role.GROUP),
    Where("env.*.deps", Role.GROUP),
)
_COMMANDS = {"commands", "commands_pre", "commands_post", "install_command", "list_dependencies_command"}
_FACTORS = re.compile(r"[!\w.,{}-]+:[ \t]+", re.ASCII)
_REFERENCES = re.compile(r"\{\[([^\]{}]*)\](\w+)\}")  # {[base]deps}
_REFERENCE = re.compile(r"(?:[!\w.,{}-]+:\s+)?\{\[[^\]{}]*\]\w+\}", re.ASCII)
_SUBSTITUTED = re.compile(r"\{(?:env:\w+:)?([^{}]*)\}")
_FILES = {"-r": False, "--requirement": False, "-c": True, "--constraint": True}


def read(source: Source) -> Document:
    """The requirements of a tox.ini or tox.toml. Raises FormatError, with the line, when it is not valid."""
    if source.path.suffix == ".toml":
        data = parse_toml(source, source.text)
        found = of_scripts(toml_scripts(source, data))
        return _with_commands(read_toml(source, PLACES, "tox"), document(source, "tox", found))
    parse(source, source.text)
    requirements: list[FoundRequirement] = []
    files: dict[bool, list[Path]] = {False: [], True: []}
    scripts: list[Piece] = []
    notes: list[Notice] = []
    lines = list(option_lines(source))
    referred = _referred(lines)
    for line in lines:
        own = line.option == "deps" and (line.section == "tox" or line.section.startswith("testenv"))
        if own or (line.section, line.option) in referred:
            notes += _dependency(source, line, requirements, files)
        elif line.option in _COMMANDS:
            scripts.append(_script(line))
    notices = (*(notice for found in requirements for notice in of_requirement(found)), *notes)
    whole = Document("tox", source, tuple(requirements), notices)
    whole = _with_commands(whole, document(source, "tox", of_scripts(_joined(scripts))))
    return replace(
        whole,
        includes=(*whole.includes, *files[False]),
        constraint_files=(*whole.constraint_files, *files[True]),
    )


def _with_commands(own: Document, commands: Document) -> Document:
    """A document that is rewritten, with what its commands install."""
    return replace(
        own,
        requirements=(*own.requirements, *commands.requirements),
        notices=(*own.notices, *commands.notices),
        includes=(*own.includes, *commands.includes),
        constraint_files=(*own.constraint_files, *commands.constraint_files),
        commands=commands.commands,
    )


def _dependency(
    source: Source, line: Line, requirements: list[FoundRequirement], files: dict[bool, list[Path]]
) -> Iterator[Notice]:
    """A line of deps: a requirement, after the factors for which it counts, or a file of them; what is not read."""
    factors = _FACTORS.match(line.text)
    lead = factors.end() if factors else 0
    text = line.text[lead:].strip()
    if text.startswith("-"):
        option, value = setting(text)
        if option in _FILES and value and "{" not in value.removeprefix("{toxinidir}/"):
            files[_FILES[option]].append(source.path.parent / value.removeprefix("{toxinidir}/"))
            return
    name = project_of(text)
    at = line.at + lead
    place = Place(source.path, *source.position(at), f"{line.section}.{line.option}")
    if not name:
        if "{" in text and not _REFERENCE.fullmatch(text):
            yield Notice("dynamic", f"{text} is only known at run time: not read", place)
        return
    certain = "{" not in text
    spans = (line.whole,) if line.alone else ((line.at, line.at + len(line.text)),)
    values = ((at, at + len(text)),)
    requirements.append(FoundRequirement(name, text, Role.GROUP, place, spans=spans, values=values, certain=certain))


def _referred(lines: list[Line]) -> set[tuple[str, str]]:
    """The options of other sections that deps take over: ``{[base]deps}``, and what these take over themselves."""
    found: set[tuple[str, str]] = set()
    while True:
        inside = [
            line
            for line in lines
            if (line.section, line.option) in found
            or (line.option == "deps" and (line.section == "tox" or line.section.startswith("testenv")))
        ]
        named = {(match[1] or line.section, match[2]) for line in inside for match in _REFERENCES.finditer(line.text)}
        if named <= found:
            return found
        found |= named


def _script(line: Line) -> Piece:
    text = _SUBSTITUTED.sub(lambda match: match[1] if match[0].startswith("{env:") else "$_", line.text)
    return Piece(text.lstrip("-! "), ((0, line.at),), dialect=Dialect.SH)


def _joined(scripts: list[Piece]) -> Iterator[Piece]:
    """The lines of commands, those that a backslash ends joined to the next."""
    waiting: Piece | None = None
    for script in scripts:
        if waiting is not None:
            anchor = (len(waiting.text) - 1, script.anchors[0][1])
            whole = Piece(waiting.text[:-1] + script.text, (*waiting.anchors, anchor))
        else:
            whole = script
        waiting = whole if whole.text.endswith("\\") else None
        if waiting is None:
            yield whole
    if waiting is not None:
        yield waiting


def toml_scripts(source: Source, data: Any) -> Iterator[Piece]:
    """The commands of a tox.toml, which are lists of words."""
    for key, value in data.items() if isinstance(data, dict) else ():
        if key in _COMMANDS and isinstance(value, list):
            rows = value if value and isinstance(value[0], list) else [value]
            for row in rows:
                words = [word if isinstance(word, str) else UNKNOWN for word in row if isinstance(word, (str, dict))]
                if words and isinstance(row, list):
                    at = max(source.text.find(words[0]), 0)
                    quoted = " ".join('"' + word.replace('"', "") + '"' for word in words)
                    yield Piece(quoted, ((0, at),), dialect=Dialect.WORDS)
        else:
            yield from toml_scripts(source, value)
