"""setup.cfg (setuptools' declarative configuration): install_requires, setup_requires, tests_require, extras."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.model import Document, FoundRequirement, ItemList, Notice, Place, Role, Source, Span

LONGEST_LINE = 10_000  # characters

_OPTIONS = {"install_requires": Role.RUNTIME, "setup_requires": Role.BUILD, "tests_require": Role.GROUP}
_SECTION = re.compile(r"\[([^\]\r\n]+)\]")
_OPTION = re.compile(r"([^\s:=#;\[][^:=\r\n]*?)[ \t]*[=:][ \t]*")


def read(source: Source) -> Document:
    """The requirements of a setup.cfg. Raises FormatError, with the line, when configparser does not accept it."""
    parse(source, source.text)
    found = tuple(_requirements(source))
    notices: list[Notice] = [notice for requirement in found for notice in of_requirement(requirement)]
    return Document("setup.cfg", source, found, tuple(notices), includes=tuple(_files(source)))


def _files(source: Source) -> Iterator[Path]:
    """The files that ``file:`` names in place of requirements."""
    for line in option_lines(source):
        if _role((line.section, line.option)) is not None and line.text.startswith("file:"):
            for name in line.text.removeprefix("file:").split(","):
                yield source.path.parent / name.strip()


def parse(source: Source, text: str) -> dict[str, dict[str, str]]:
    """The sections, as configparser reads them. Raises FormatError."""
    if any(len(line) > LONGEST_LINE for line in text.splitlines()):  # configparser takes quadratic time for a line
        raise FormatError(f"{source.path} has a line of more than {LONGEST_LINE:,} characters")
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise FormatError(f"{source.path} is not a valid setup.cfg: {' '.join(str(error).split())[:200]}") from None
    return {section: dict(parser.items(section)) for section in parser.sections()}


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a value: its section and option, its text and where that begins, and the ``whole`` line.

    It has the line to itself (``alone``) unless it follows the name of the option.
    """

    section: str
    option: str
    text: str
    at: int
    whole: Span
    alone: bool


def option_lines(source: Source) -> Iterator[Line]:
    """The lines of all values that are not empty, with their continuation lines."""
    section, option, offset = "", "", 0
    for line in source.text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        start, offset = offset, offset + len(line)
        if not body.strip() or body.lstrip().startswith(("#", ";")):
            continue
        if body[0] in " \t" and option:
            lead = len(body) - len(body.lstrip())
            yield Line(section, option, body.strip(), start + lead, (start, offset), alone=True)
        elif match := _SECTION.match(body):
            section, option = match[1], ""
        elif match := _OPTION.match(body):
            option = match[1].strip().lower()
            rest = body[match.end() :].rstrip()
            if rest:
                yield Line(section, option, rest, start + match.end(), (start, offset), alone=False)


def _requirements(source: Source) -> Iterator[FoundRequirement]:
    inline: set[tuple[str, str]] = set()  # a list in one line is split at semicolons, one of several lines is not
    for line in option_lines(source):
        where = (line.section, line.option)
        role = _role(where)
        if not line.alone:
            inline.add(where)
            yield from _inline(source, (line.at, line.at + len(line.text)), where)
        elif role is not None and where not in inline:
            place = Place(source.path, *source.position(line.at), ".".join(where))
            values = ((line.at, line.at + len(line.text)),)
            yield FoundRequirement(project_of(line.text), line.text, role, place, spans=(line.whole,), values=values)


def _role(where: tuple[str, str]) -> Role | None:
    section, option = where
    if section == "options.extras_require":
        return Role.RUNTIME
    return _OPTIONS.get(option) if section == "options" else None


def _inline(source: Source, span: Span, where: tuple[str, str]) -> Iterator[FoundRequirement]:
    role = _role(where)
    if role is None:
        return
    parts: list[Span] = []
    separators: list[int | None] = []
    for match in re.compile(r"[^;]+").finditer(source.text, *span):
        text = match[0].strip()
        if text and not text.startswith("file:"):
            at = match.start() + len(match[0]) - len(match[0].lstrip())
            parts.append((at, at + len(text)))
            separators.append(match.end() if match.end() < span[1] else None)
    items = ItemList(*span, tuple(parts), tuple(separators))
    for index, (start, end) in enumerate(parts):
        text = source.text[start:end]
        place = Place(source.path, *source.position(start), ".".join(where))
        yield FoundRequirement(project_of(text), text, role, place, values=((start, end),), items=items, index=index)
