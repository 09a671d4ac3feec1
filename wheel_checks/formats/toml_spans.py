"""The offsets of keys and values in a TOML document (v1.0.0) that tomllib, which does not report them, accepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import Enum, auto

from wheel_checks.errors import FormatError
from wheel_checks.formats.documents import parse_toml, string_end

Span = tuple[int, int]
"""The offset of an element and of its end, in characters."""
KeyPath = tuple[str | int, ...]
"""How to reach a value in a document of tables and lists."""


class Kind(Enum):
    """The kind of a value; PLAIN is anything but text and containers."""

    STRING = auto()
    ARRAY = auto()
    TABLE = auto()
    PLAIN = auto()


@dataclass(slots=True)
class Value:
    """A value: its span, including quotes and brackets; ``text`` is the content of a string.

    ``members`` are the elements of an array (each with its index) or of an inline table (each with the parts of its
    key). ``spans`` are their spans, with the key in an inline table, and ``separators`` the offset of the comma after
    each, or None.
    """

    kind: Kind
    start: int
    end: int
    text: str = ""
    members: list[tuple[KeyPath, Value]] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    separators: list[int | None] = field(default_factory=list)

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
    key: int  # offset of the key
    value: Value


_SPACE = re.compile(r"[ \t]*")
_GAP = re.compile(r"[ \t\r\n]+|#[^\r\n]*")
_TAIL = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\Z)")
_BARE = re.compile(r"[A-Za-z0-9_-]+")
_PLAIN = re.compile(r"[^,\]}#\r\n]+")


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
        self.skip_gap()
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
            self.skip_gap()

    def skip(self, pattern: re.Pattern[str]) -> int:
        match = pattern.match(self.text, self.at)
        self.at = match.end() if match else self.at
        return self.at

    def skip_gap(self) -> None:
        """Skip white space, line ends and comments."""
        while match := _GAP.match(self.text, self.at):
            self.at = match.end()

    def take(self, pattern: re.Pattern[str]) -> str:
        match = pattern.match(self.text, self.at)
        if match is None:
            raise self.unreadable()
        self.at = match.end()
        return match[0]

    def unreadable(self) -> FormatError:
        """The error for text that tomllib does not accept."""
        return FormatError(f"the TOML could not be read at offset {self.at}")

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
        start = self.at
        self.at = string_end(self.text, start)
        raw = self.text[start : self.at]
        if raw[0] == raw[1:2] == raw[2:3] or "\\" in raw:
            return str(parse_toml(f"x = {raw}", "the string", len(self.text) + 4)["x"])
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
        value = Value(kind, self.at, self.at)
        self.at += 1
        self.skip_gap()
        while not self.text.startswith(bracket, self.at):
            begin = self.at
            path: KeyPath = (len(value.members),)
            if kind is Kind.TABLE:
                path = self.key()
                self.skip(_SPACE)
                self.at += 1
                self.skip(_SPACE)
            value.members.append((path, self.value()))
            value.spans.append((begin, self.at))
            self.skip_gap()
            separated = self.text.startswith(",", self.at)
            value.separators.append(self.at if separated else None)
            self.at += separated
            self.skip_gap()
        self.at += 1
        value.end = self.at
        return value


class Lines:
    """The lines of strings, looked up by the path of a key ("project.dependencies") and the text; each is given once.

    Raises FormatError like :func:`scan`.
    """

    def __init__(self, text: str) -> None:
        self._left: dict[tuple[str, str], list[int]] = {}
        line, counted = 1, 0
        for statement in scan(text):
            if isinstance(statement, Statement):
                for path, value in _strings(statement.path, statement.value):
                    line += text.count("\n", counted, value.start)
                    counted = value.start
                    key = ".".join(part for part in path if isinstance(part, str))
                    self._left.setdefault((key, value.text), []).append(line)

    def of(self, path: str, text: str) -> int:
        """The line of the next such string; 0 for none."""
        lines = self._left.get((path, text))
        return lines.pop(0) if lines else 0


def _strings(path: KeyPath, value: Value) -> Iterator[tuple[KeyPath, Value]]:
    if value.kind is Kind.STRING:
        yield path, value
    for key, member in value.members:
        yield from _strings((*path, *key), member)
