"""Where everything is in a TOML document (v1.0.0): tomllib shows the values, this shows their offsets.

The text must have passed tomllib: this reads what is valid, and checks nothing again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from wheel_checks.errors import FormatError
from wheelproof.pins.model import ItemList, KeyPath, Span


class Kind(Enum):
    """What a value is; all that is neither text nor a container is PLAIN."""

    STRING = auto()
    ARRAY = auto()
    TABLE = auto()
    PLAIN = auto()


@dataclass(slots=True)
class Value:
    """A value: its span, quotes and brackets included; ``text`` is that of a string.

    ``members`` are those of an array (each with its index) or of an inline table (each with the parts of its key), and
    ``items`` their layout; an item of an inline table is a key with its value.
    """

    kind: Kind
    start: int
    end: int
    text: str = ""
    members: list[tuple[tuple[str | int, ...], Value]] = field(default_factory=list)
    items: ItemList | None = None

    @property
    def inner(self) -> Span:
        """The span of a string without its quotes (of a one-line string; such are all requirements)."""
        return self.start + 1, self.end - 1


@dataclass(slots=True)
class Header:
    """``[a.b]`` or ``[[a.b]]``: the span of its line or lines, and the path of its table, indexes included."""

    path: KeyPath
    start: int
    end: int


@dataclass(slots=True)
class Statement:
    """``a.b = value`` at the level of a table: the span of its line or lines, and its whole path."""

    path: KeyPath
    start: int
    end: int
    key: int  # where the key begins
    value: Value


_SPACE = re.compile(r"[ \t]*+")
_GAP = re.compile(r"(?:[ \t\r\n]++|#[^\r\n]*+)*+")
_TAIL = re.compile(r"[ \t]*+(?:#[^\r\n]*+)?(?:\r\n|\n|\Z)")
_BARE = re.compile(r"[A-Za-z0-9_-]++")
_PLAIN = re.compile(r"[^,\]}#\r\n]++")
_STRING = re.compile(
    r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""(?:"{1,2})?'
    r"|'''(?:[^']++|'(?!''))*+'''(?:'{1,2})?"
    r'|"(?:[^"\\\r\n]++|\\.)*+"'
    r"|'[^'\r\n]*+'"
)


def scan(text: str) -> list[Header | Statement]:
    """The headers and statements of a valid document, in order. Raises FormatError when it is nested too deeply."""
    try:
        return list(_Scanner(text).entries())
    except RecursionError:
        raise FormatError("the TOML is nested too deeply") from None


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.counts: dict[KeyPath, int] = {}  # of the arrays of tables: the index of the last one

    def entries(self) -> Iterator[Header | Statement]:
        table: KeyPath = ()
        self.skip(_GAP)
        while self.at < len(self.text):
            line = self.text.rfind("\n", 0, self.at) + 1
            if self.text[self.at] == "[":
                table = self.header()
                yield Header(table, line, self.skip(_TAIL))
            else:
                key = self.at
                path = self.key()
                self.skip(_SPACE)
                self.at += 1  # the equals sign
                self.skip(_SPACE)
                value = self.value()
                yield Statement((*table, *path), line, self.skip(_TAIL), key, value)
            self.skip(_GAP)

    def skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:  # not in what tomllib accepts
            raise FormatError(f"the TOML could not be read at offset {self.at}")
        self.at = match.end()
        return match[0]

    def header(self) -> KeyPath:
        array = self.text.startswith("[[", self.at)
        self.at += 1 + array
        self.skip(_SPACE)
        path: KeyPath = self.key()
        self.skip(_SPACE)
        self.at += 1 + array
        if not array:
            return self.indexed(path)
        path = (*self.indexed(path[:-1]), path[-1])
        self.counts[path] = self.counts.get(path, -1) + 1
        return (*path, self.counts[path])

    def indexed(self, path: KeyPath) -> KeyPath:
        """The path with the index of the last table of every array of tables on the way."""
        whole: KeyPath = ()
        for part in path:
            whole = (*whole, part)
            if isinstance(part, str) and whole in self.counts:
                whole = (*whole, self.counts[whole])
        return whole

    def key(self) -> tuple[str, ...]:
        parts: list[str] = []
        while True:
            quoted = self.text[self.at] in "\"'"
            parts.append(self.string() if quoted else self.take(_BARE))
            end = self.at
            self.skip(_SPACE)
            if not self.text.startswith(".", self.at):
                self.at = end
                return tuple(parts)
            self.at += 1
            self.skip(_SPACE)

    def string(self) -> str:
        raw = self.take(_STRING)
        if raw[0] == raw[1:2] == raw[2:3] or "\\" in raw:
            return str(tomllib.loads(f"x = {raw}")["x"])
        return raw[1:-1]

    def value(self) -> Value:
        start, first = self.at, self.text[self.at]
        if first in "\"'":
            text = self.string()
            return Value(Kind.STRING, start, self.at, text)
        if first == "[":
            return self.container(Kind.ARRAY, "]")
        if first == "{":
            return self.container(Kind.TABLE, "}")
        plain = self.take(_PLAIN).rstrip(" \t")
        self.at = start + len(plain)
        return Value(Kind.PLAIN, start, self.at, plain)

    def container(self, kind: Kind, bracket: str) -> Value:
        start = self.at
        members: list[tuple[tuple[str | int, ...], Value]] = []
        spans: list[Span] = []
        separators: list[int | None] = []
        self.at += 1
        self.skip(_GAP)
        while not self.text.startswith(bracket, self.at):
            begin = self.at
            path: tuple[str | int, ...] = (len(members),)
            if kind is Kind.TABLE:
                path = self.key()
                self.skip(_SPACE)
                self.at += 1
                self.skip(_SPACE)
            members.append((path, self.value()))
            spans.append((begin, self.at))
            self.skip(_GAP)
            separated = self.text.startswith(",", self.at)
            separators.append(self.at if separated else None)
            self.at += separated
            self.skip(_GAP)
        self.at += 1
        layout = ItemList(start + 1, self.at - 1, tuple(spans), tuple(separators), trailing=kind is Kind.ARRAY)
        return Value(kind, start, self.at, members=members, items=layout)
