"""setup.cfg (setuptools' declarative configuration): install_requires, setup_requires, tests_require, extras."""

from __future__ import annotations

import configparser
import re
from collections.abc import Iterator

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document, FoundRequirement, ItemList, Notice, Place, Role, Span

LONGEST_LINE = 10_000  # characters

_OPTIONS = {"install_requires": Role.RUNTIME, "setup_requires": Role.BUILD, "tests_require": Role.GROUP}
_SECTION = re.compile(r"\[([^\]\r\n]+)\]")
_OPTION = re.compile(r"([^\s:=#;\[][^:=\r\n]*?)[ \t]*[=:][ \t]*")


def read(source: Source) -> Document:
    """The requirements of a setup.cfg. Raises FormatError, with the line, when configparser does not accept it."""
    parse(source, source.text)
    found = tuple(_requirements(source))
    notices: list[Notice] = [notice for requirement in found for notice in of_requirement(requirement)]
    return Document("setup.cfg", source, found, tuple(notices))


def parse(source: Source, text: str) -> dict[str, dict[str, str]]:
    """The sections, as configparser reads them. Raises FormatError."""
    if any(len(line) > LONGEST_LINE for line in text.splitlines()):  # configparser takes quadratic time for a line
        raise FormatError(f"{source.path} has a line of more than {LONGEST_LINE:,} characters")
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise FormatError(f"{source.path} is no valid setup.cfg: {' '.join(str(error).split())[:200]}") from None
    return {section: dict(parser.items(section)) for section in parser.sections()}


def _requirements(source: Source) -> Iterator[FoundRequirement]:
    section, option, offset = "", "", 0
    indented = False
    for line in source.text.splitlines(keepends=True):
        body = line.rstrip("\r\n")
        start, offset = offset, offset + len(line)
        if not body.strip() or body.lstrip().startswith(("#", ";")):
            continue
        if body[0] in " \t" and option:
            if indented:
                yield from _line(source, (start, offset), body, (section, option))
            continue
        if match := _SECTION.match(body):
            section, option = match[1], ""
        elif match := _OPTION.match(body):
            option = match[1].strip().lower()
            rest = body[match.end() :].rstrip()
            indented = not rest  # a list in one line is split at semicolons, one of several lines is not
            if rest:
                yield from _inline(source, (start + match.end(), start + match.end() + len(rest)), (section, option))


def _role(where: tuple[str, str]) -> Role | None:
    section, option = where
    if section == "options.extras_require":
        return Role.RUNTIME
    return _OPTIONS.get(option) if section == "options" else None


def _line(source: Source, span: Span, body: str, where: tuple[str, str]) -> Iterator[FoundRequirement]:
    role = _role(where)
    if role is None:
        return
    text = body.strip()
    at = span[0] + len(body) - len(body.lstrip())
    place = Place(source.path, *source.position(at), ".".join(where))
    yield FoundRequirement(project_of(text), text, role, place, spans=(span,), values=((at, at + len(text)),))


def _inline(source: Source, span: Span, where: tuple[str, str]) -> Iterator[FoundRequirement]:
    role = _role(where)
    if role is None:
        return
    parts: list[Span] = []
    separators: list[int | None] = []
    for match in re.compile(r"[^;]+").finditer(source.text, *span):
        text = match[0].strip()
        if text:
            at = match.start() + len(match[0]) - len(match[0].lstrip())
            parts.append((at, at + len(text)))
            separators.append(match.end() if match.end() < span[1] else None)
    items = ItemList(*span, tuple(parts), tuple(separators))
    for index, (start, end) in enumerate(parts):
        text = source.text[start:end]
        place = Place(source.path, *source.position(start), ".".join(where))
        yield FoundRequirement(project_of(text), text, role, place, values=((start, end),), items=items, index=index)
