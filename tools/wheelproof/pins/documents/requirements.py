"""Requirements and constraints files, read as pip reads them (its reference: "Requirements File Format")."""

from __future__ import annotations

import re
from pathlib import Path

from wheel_checks.formats.requirements_lines import COMMENT, OPTION, LogicalLine, logical_lines, setting, split_options
from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.model import Document, FoundRequirement, IndexOption, Notice, Place, Role, Source, Span

_HASH = re.compile(r"--hash[=\s]\s*\S+")
_BUT_HASHES = re.compile(r"--hash[=\s]\s*\S+|[\s\\]")
_VIA_LINE = re.compile(r"^[ \t]*# via\b", re.MULTILINE)
_INCLUDES = {"-r": "-r", "--requirement": "-r", "-c": "-c", "--constraint": "-c"}
_INDEXES = {"-i", "--index-url", "--extra-index-url", "-f", "--find-links"}


def read(source: Source, *, constraint: bool = False) -> Document:
    """The requirements of a file; with ``constraint`` all of them are constraints (the file was named by ``-c``)."""
    requirements: list[FoundRequirement] = []
    notices: list[Notice] = []
    files: dict[str, list[Path]] = {"-r": [], "-c": []}
    indexes: list[IndexOption] = []
    hashed = False
    role = Role.CONSTRAINT if constraint or "constraint" in source.path.name.lower() else Role.RUNTIME
    for line in logical_lines(source.text):
        place = Place(source.path, line.number, source.position(line.at)[1])
        text, editable = line.text, False
        if text.startswith("-"):
            option, value = setting(text)
            if option in _INCLUDES and value:
                if "://" in value:
                    notices.append(Notice("remote-include", f"{option} {value} is not read: it is remote", place))
                else:
                    files[_INCLUDES[option]].append(source.path.parent / value)
                continue
            if option in _INDEXES and value:
                indexes.append(IndexOption(value, (line.start, line.end), place))
                if indexes[-1].for_torch:
                    message = f"{option} {value} is kept, though it may be unused now (--drop-orphan-index removes it)"
                    notices.append(Notice("index-kept", message, place, on_change=True))
                continue
            if option not in ("-e", "--editable"):
                hashed = hashed or option == "--require-hashes"
                continue
            text, editable = value, True
        requirement, options = split_options(text)
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


def _value_span(text: str, line: LogicalLine, options: str) -> Span:
    """The span of a requirement in the file, with the hashes after it, which are of the version that is present."""
    raw = text[line.at : line.end]
    end = len(raw)
    if via := _VIA_LINE.search(raw):
        end = via.start()
    if comment := COMMENT.search(raw, 0, end):
        end = comment.start()
    if options and (option := OPTION.search(raw, 0, end)):
        hashes = list(_HASH.finditer(raw, 0, end))
        only_hashes = not _BUT_HASHES.sub("", raw[option.start() : end])
        end = hashes[-1].end() if hashes and only_hashes else option.start()
    body = raw[:end].rstrip(" \t\r\n\\\v\f\x1c\x1d\x1e\x85\u2028\u2029")
    return line.at, line.at + len(body)
