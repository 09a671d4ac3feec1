"""Requirements and constraints files, read as pip reads them (its reference: "Requirements File Format").

Physical lines end where ``str.splitlines`` ends them, a backslash joins a line to the next, a comment line ends what
was joined, and a comment begins at a # after white space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document, FoundRequirement, IndexOption, Notice, Place, Role, Span

_LEAD = re.compile(r"(?:[ \t\r\n\v\f]|\\(?=[\r\n]))*+")
_COMMENT = re.compile(r"(?:^|(?<=\s))#")
_OPTION = re.compile(r"\s-{1,2}[A-Za-z]")
_HASH = re.compile(r"--hash[=\s]\s*\S+")
_BUT_HASHES = re.compile(r"--hash[=\s]\s*\S+|[\s\\]")
_VIA = re.compile(r"[ \t]*# via\b(.*)")
_VIA_LINE = re.compile(r"^[ \t]*# via\b", re.MULTILINE)
_VIA_MORE = re.compile(r"[ \t]*#   +\S")
_SETTING = re.compile(r"(--?[A-Za-z][A-Za-z-]*)(?:\s*=\s*|\s+|(?<=^-[rcefi]))(\S.*)?$")
_INCLUDES = {"-r": "-r", "--requirement": "-r", "-c": "-c", "--constraint": "-c"}
_INDEXES = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links"}


@dataclass(frozen=True, slots=True)
class _Line:
    """A logical line: its ``text``, joined and without comment; its span, with all that goes when it is removed."""

    text: str
    start: int
    end: int
    at: int  # where the text begins in the file
    number: int


def read(source: Source, *, constraint: bool = False) -> Document:
    """The requirements of a file; with ``constraint`` all of them are constraints (the file was named by ``-c``)."""
    requirements: list[FoundRequirement] = []
    notices: list[Notice] = []
    files: dict[str, list[Path]] = {"-r": [], "-c": []}
    indexes: list[IndexOption] = []
    hashed = False
    role = Role.CONSTRAINT if constraint or "constraint" in source.path.name.lower() else Role.RUNTIME
    for line in _logical_lines(source.text):
        place = Place(source.path, line.number, source.position(line.at)[1])
        text, editable = line.text, False
        if text.startswith("-"):
            option, value = _setting(text)
            if option in _INCLUDES and value:
                if "://" in value:
                    notices.append(Notice("remote-include", f"{option} {value} is not read: it is remote", place))
                else:
                    files[_INCLUDES[option]].append(source.path.parent / value)
                continue
            if option in _INDEXES and value:
                indexes.append(IndexOption(value, (line.start, line.end), place))
                if indexes[-1].for_torch:
                    message = f"{option} {value} stays, though it may serve nobody now (--drop-orphan-index removes it)"
                    notices.append(Notice("index-kept", message, place, on_change=True))
                continue
            if option not in ("-e", "--editable"):
                hashed = hashed or option == "--require-hashes"
                continue
            text, editable = value, True
        requirement, options = _split(text)
        if options:
            hashed = hashed or bool(_HASH.search(options))
        values = () if editable else (_value_span(source.text, line, options),)
        found = FoundRequirement(
            project_of(requirement), requirement, role, place, spans=((line.start, line.end),), values=values
        )
        requirements.append(found)
        notices += of_requirement(found)
    if hashed:
        notices.append(Notice("hash-mode", _HASH_MODE, Place(source.path, 1, 1), on_change=True))
    return Document(
        "requirements",
        source,
        tuple(requirements),
        tuple(notices),
        includes=tuple(files["-r"]),
        constraint_files=tuple(files["-c"]),
        indexes=tuple(indexes),
    )


_HASH_MODE = (
    "the file is in hash-checking mode: without torch in it `uv --require-hashes` fails on what needs torch, and pip "
    "passes only if the installed torch satisfies it"
)


def _logical_lines(text: str) -> Iterator[_Line]:
    """The logical lines that hold something, with the "# via" block under each."""
    physical = text.splitlines(keepends=True)
    offset, index = 0, 0
    while index < len(physical):
        start, first, parts = offset, index, list[str]()
        joined = True
        while joined and index < len(physical):
            body = physical[index].rstrip("\r\n\v\f\x1c\x1d\x1e\x85\u2028\u2029")
            comment = body.lstrip().startswith("#")
            if comment and parts:
                break  # it ends what was joined, and stays
            joined = body.endswith("\\") and not comment
            parts.append(body.strip("\\") if joined else body)
            offset += len(physical[index])
            index += 1
        content = _uncommented("".join(parts))
        if not content:
            continue
        lead = _LEAD.match(text, start)
        number, at = first + 1, lead.end() if lead else start
        while index < len(physical) and (via := _VIA.match(physical[index])):
            more = not via[1].strip()
            offset += len(physical[index])
            index += 1
            while more and index < len(physical) and _VIA_MORE.match(physical[index]):
                offset += len(physical[index])
                index += 1
        yield _Line(content, start, offset, at, number)


def _uncommented(line: str) -> str:
    match = _COMMENT.search(line) if "#" in line else None
    return (line[: match.start()] if match else line).strip()


def _setting(text: str) -> tuple[str, str]:
    match = _SETTING.match(text)
    return (match[1], (match[2] or "").strip().strip("\"'")) if match else (text.split(maxsplit=1)[0], "")


def _split(text: str) -> tuple[str, str]:
    """A requirement, and the options behind it."""
    match = _OPTION.search(text) if "-" in text else None
    return (text[: match.start()].rstrip(), text[match.start() :]) if match else (text, "")


def _value_span(text: str, line: _Line, options: str) -> Span:
    """The span of a requirement in the file, with the hashes behind it, which are of the version that stands there."""
    raw = text[line.at : line.end]
    end = len(raw)
    if via := _VIA_LINE.search(raw):
        end = via.start()
    if comment := _COMMENT.search(raw, 0, end):
        end = comment.start()
    if options and (option := _OPTION.search(raw, 0, end)):
        hashes = list(_HASH.finditer(raw, 0, end))
        only_hashes = not _BUT_HASHES.sub("", raw[option.start() : end])
        end = hashes[-1].end() if hashes and only_hashes else option.start()
    body = raw[:end].rstrip(" \t\r\n\\\v\f\x1c\x1d\x1e\x85\u2028\u2029")
    return line.at, line.at + len(body)
