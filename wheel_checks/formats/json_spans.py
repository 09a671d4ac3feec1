"""Where the values of a JSON document stand, found without building them, in time linear in its length.

For documents of strangers of which little is kept: ``json.loads`` makes objects of twenty times a document's size.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

Span = tuple[int, int]
"""Where a value begins, and the position after it, in bytes."""

MOST_KEYS = 1_000
MOST_PARTS = 4_000_000
"""Brackets of one value, and strings with many escapes. A page of 100,000 files has 600,000."""

_DEPTH = {b"{": 1, b"[": 1, b"}": -1, b"]": -1}
_BLANK = re.compile(rb"[ \t\r\n]*")
_SCALAR = re.compile(rb"[^\s,:\[\]{}\"]+")
# A match is one part of a string, or of a value between two brackets. Repetitions are bounded, since ``re`` keeps some
# hundred bytes for each of a group.
_STRING_PART = re.compile(rb'[^"\\]*(?:\\.[^"\\]*){0,100}', re.DOTALL)
_INERT_PART = re.compile(rb'[^"\[\]{}]*(?:"[^"\\]*(?:\\.[^"\\]*){0,10}"[^"\[\]{}]*){0,100}', re.DOTALL)


def members(data: bytes) -> dict[str, Span]:
    """The values of the object that ``data``, UTF-8, is, by key; of equal keys the last counts, as in ``json.loads``.

    What is inside the values is not checked. Raises ValueError when ``data`` is not an object, or has too many keys
    or brackets.
    """
    found: dict[str, Span] = {}
    position = _skip(data, 0, b"{")
    if data[position : position + 1] == b"}":
        return _nothing_after(data, position + 1, found)
    while True:
        if data[position : position + 1] != b'"':
            raise _unexpected(data, position, "a key in quotes")
        key = _string_end(data, position)
        start = _skip(data, key, b":")
        end = _end(data, start)
        found[str(json.loads(data[position:key]))] = (start, end)
        if len(found) > MOST_KEYS:
            raise ValueError(f"more than {MOST_KEYS:,} keys")
        position = _BLANK.match(data, end).end()  # type: ignore[union-attr]  # matches anywhere
        if data[position : position + 1] == b"}":
            return _nothing_after(data, position + 1, found)
        position = _skip(data, position, b",")


def elements(data: bytes, span: Span) -> Iterator[Span]:
    """The elements of the list at ``span``. Raises ValueError when it is not a list, or is malformed between
    elements.
    """
    position = _skip(data, span[0], b"[")
    if data[position : position + 1] == b"]":
        return
    while True:
        end = _end(data, position)
        yield position, end
        position = _BLANK.match(data, end).end()  # type: ignore[union-attr]  # matches anywhere
        if data[position : position + 1] == b"]":
            return
        position = _skip(data, position, b",")


def value(data: bytes, span: Span) -> Any:
    """The value at ``span``. Raises ValueError when it is malformed, RecursionError when it is nested too deeply."""
    return json.loads(data[span[0] : span[1]].decode("utf-8", "replace"))


def _end(data: bytes, start: int) -> int:
    """The position after the value that begins at ``start``."""
    first = data[start : start + 1]
    if first == b'"':
        return _string_end(data, start)
    if first not in (b"{", b"["):
        scalar = _SCALAR.match(data, start)
        if scalar is None:
            raise _unexpected(data, start, "a value")
        return scalar.end()
    depth, position = 0, start
    for _ in range(MOST_PARTS):
        mark = data[position : position + 1]
        if mark == b'"':
            position = _string_end(data, position)
        elif mark in _DEPTH:
            depth, position = depth + _DEPTH[mark], position + 1
        else:
            raise _unexpected(data, position, "a bracket that closes")
        if not depth:
            return position
        position = _INERT_PART.match(data, position).end()  # type: ignore[union-attr]  # matches anywhere
    raise ValueError(f"more than {MOST_PARTS:,} parts of one value")


def _string_end(data: bytes, start: int) -> int:
    """The position after the string that begins at ``start``."""
    position = start + 1
    while (end := _STRING_PART.match(data, position).end()) > position:  # type: ignore[union-attr]  # matches anywhere
        position = end
    if data[position : position + 1] != b'"':
        raise _unexpected(data, start, "a string that ends")
    return position + 1


def _skip(data: bytes, position: int, mark: bytes) -> int:
    """The position of what follows ``mark``, which must be at ``position``, blanks around it left aside."""
    position = _BLANK.match(data, position).end()  # type: ignore[union-attr]  # matches anywhere
    if data[position : position + 1] != mark:
        raise _unexpected(data, position, repr(mark.decode()))
    return _BLANK.match(data, position + 1).end()  # type: ignore[union-attr]  # matches anywhere


def _nothing_after(data: bytes, position: int, found: dict[str, Span]) -> dict[str, Span]:
    end = _BLANK.match(data, position).end()  # type: ignore[union-attr]  # matches anywhere
    if end < len(data):
        raise _unexpected(data, end, "nothing more")
    return found


def _unexpected(data: bytes, position: int, expected: str) -> ValueError:
    return ValueError(
        f"{data[position : position + 20].decode('utf-8', 'replace')!r} at byte {position}; expected {expected}"
    )
