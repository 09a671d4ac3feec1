"""Python scripts with inline metadata (PEP 723)."""

from __future__ import annotations

import re

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.toml.pyproject import SCRIPT_PLACES
from wheelproof.pins.documents.toml.requirements import read_toml
from wheelproof.pins.model import Document, Source, Span

_BEGIN, _END = "# /// script", "# ///"
_PREFIX = re.compile(r"^# ?", re.MULTILINE)
_NOT_NEWLINE = re.compile(r"[^\n]")


def read(source: Source) -> Document:
    """The requirements in the block of a script; none without a block. Raises FormatError for two, or no valid TOML."""
    blocks = _blocks(source.text)
    if len(blocks) > 1:
        raise FormatError(f"{source.path} has {len(blocks)} blocks of script metadata", expected="one")
    if not blocks:
        return Document("script", source)
    return read_toml(source, SCRIPT_PLACES, "script", text=metadata_of(source.text))


def metadata_of(text: str) -> str:
    """The TOML of the block, every character at its offset in the file: all else is blank."""
    blocks = _blocks(text)
    if not blocks:
        return ""
    start, end = blocks[0]
    content = _PREFIX.sub(lambda match: " " * len(match[0]), text[start:end])
    return _NOT_NEWLINE.sub(" ", text[:start]) + content + _NOT_NEWLINE.sub(" ", text[end:])


def _blocks(text: str) -> list[Span]:
    """The contents of all blocks: after the opening line, comment lines up to the last of them that closes a block."""
    blocks: list[Span] = []
    begin = end = None
    offset = 0
    for line in [*text.split("\n"), ""]:
        body = line.rstrip("\r")
        if begin is None:
            begin = offset + len(line) + 1 if body.rstrip(" \t") == _BEGIN else None
            end = None
        elif body.rstrip(" \t") == _END:
            end = offset
        elif body != "#" and not body.startswith("# "):
            if end is not None:
                blocks.append((begin, end))
            begin = None
        offset += len(line) + 1
    return blocks
