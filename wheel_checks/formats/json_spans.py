"""Where the values of a JSON document stand, found without building them, in time linear in its length.

For documents of strangers of which little is kept: ``json.loads`` makes objects of twenty times a document's size.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

Span = tuple[int, int]
"""Where a value begins, and the position after it, in bytes."""

MOST_KEYS = 1_000
MOST_BRACKETS = 4_000_000
"""Brackets of one value that are followed one by one: those around more than two further levels."""

# possessive, so that nothing is tried in two ways
_BLANK = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_SCALAR = re.compile(rb"[^\s,:\[\]{}\"]++")
_TEXT = rb'[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"'
# What is inside a value and cannot end it, values of two levels included: a list of files is one match. Text before a
# deeper bracket is inspected three times.
_FLAT = rb"(?:" + _TEXT + rb")*+"
_NESTED = rb"(?:" + _TEXT + rb"|[\[{]" + _FLAT + rb"[\]}])*+"
_INERT = re.compile(rb"(?:" + _TEXT + rb"|[\[{]" + _NESTED + rb"[\]}])*+", re.DOTALL)


def members(data: bytes) -> dict[str, Span]:
    """The values of the object that ``data``, UTF-8, is, by key; of equal keys the last counts, as in ``json.loads``.

    What stands inside the values is not checked. Raises ValueError when ``data`` is not an object, or has too many keys
    or brackets.
    """
    found: dict[str, Span] = {}
    position = _skip(data, 0, b"{")
    if data[position : position + 1] == b"}":
        return _nothing_after(data, position + 1, found)
    while True:
        key = _STRING.match(data, position)
        if key is None:
            raise _unexpected(data, position, "a key in quotes")
        start = _skip(data, _BLANK.match(data, key.end()).end(), b":")  # type: ignore[union-attr]  # matches anywhere
        end = _end(data, start)
        found[str(json.loads(key[0]))] = (start, end)
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
    if first not in (b"{", b"["):
        scalar = (_STRING if first == b'"' else _SCALAR).match(data, start)
        if scalar is None:
            raise _unexpected(data, start, "a value")
        return scalar.end()
    depth, position = 0, start
    for _ in range(MOST_BRACKETS):
        bracket = data[position : position + 1]
        if bracket in (b"{", b"["):
            depth += 1
        elif bracket in (b"}", b"]"):
            depth -= 1
            if not depth:
                return position + 1
        else:
            raise _unexpected(data, position, "a bracket that closes")
        position = _INERT.match(data, position + 1).end()  # type: ignore[union-attr]  # matches anywhere
    raise ValueError(f"more than {MOST_BRACKETS:,} nested brackets in one value")


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
