"""A TOML document that a user writes, read key by key; every fault is collected, with its key and its line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from difflib import get_close_matches
from typing import Any, TypeVar

from wheel_checks.errors import FormatError, WheelproofError

LARGEST = 1 << 20  # characters; such a document is a page or two
LONGEST = 1_000  # characters of one string
MOST_FAULTS = 20  # told at once

T = TypeVar("T")

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?")
_KEY = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*(?:=|\.)""")

Path = tuple[str | int, ...]


class TomlTable:
    """One table of a document. Reading a key that is absent gives the default; one that is wrong gives a fault, too.

    ``path`` leads to the table: ("platform", 0) is the first ``[[platform]]``. Call :meth:`finish` on the outermost
    table when all is read.
    """

    def __init__(self, values: Mapping[str, Any], text: str = "", path: Path = (), parent: TomlTable | None = None):
        self._values, self._text, self._path = values, text, path
        self._known: set[str] = set()
        self._inner: list[TomlTable] = []
        self._faults: list[str] = parent._faults if parent else []  # noqa: SLF001  # one list for the whole document

    def __contains__(self, key: str) -> bool:
        return key in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        """A string; a required one must be there and not be empty."""
        value: str = self._read(key, str, "a string", default)
        if len(value) > LONGEST:
            self.fault(key, f"has {len(value):,} characters", f"at most {LONGEST:,}")
            return default
        if required and not value:
            self.fault(key, "is missing" if key not in self._values else "is empty", "a string")
        return value

    def texts(self, key: str, default: tuple[str, ...] = (), *, required: bool = False) -> tuple[str, ...]:
        """A list of strings; a required one must be there and hold something."""
        values = self._read(key, list, "a list of strings", None)
        if values is not None and not all(isinstance(value, str) for value in values):
            self.fault(key, "holds something else than strings", "a list of strings")
            values = None
        if any(len(value) > LONGEST for value in values or ()):
            self.fault(key, "holds a long string", f"strings of at most {LONGEST:,} characters")
            values = None
        if required and not values:
            self.fault(key, "is missing or empty", "a list of strings")
        return default if values is None else tuple(values)

    def flag(self, key: str, *, default: bool) -> bool:
        """True or false."""
        value: bool = self._read(key, bool, "true or false", default)
        return value

    def ratio(self, key: str) -> float | None:
        """A finite number of at least 1; None when absent."""
        self._known.add(key)
        value = self._values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 1 <= value < 1e9:
            self.fault(key, f"is {_shown(value)}", "a number of at least 1, such as 1.2")
            return None
        return float(value)

    def day(self, key: str) -> date:
        """A required date, as TOML writes it: 2027-06-30."""
        self._known.add(key)
        value = self._values.get(key)
        if isinstance(value, date) and not isinstance(value, datetime):
            return value
        self.fault(key, "is missing" if value is None else f"is {_shown(value)}", "a date such as 2027-06-30, unquoted")
        return date.max

    def parsed(self, key: str, parse: Callable[[str], T], default: T) -> T:
        """What ``parse`` makes of a string; its WheelproofError becomes a fault."""
        text = self.text(key)
        return self.try_parse(key, text, parse, default) if key in self._values else default

    def try_parse(self, key: str, text: str, parse: Callable[[str], T], default: T) -> T:
        """What ``parse`` makes of ``text``, a value found at ``key``; its WheelproofError becomes a fault."""
        try:
            return parse(text)
        except WheelproofError as error:
            self.fault(key, f"is wrong: {error.what}", error.expected)
        return default

    def table(self, key: str) -> TomlTable:
        """A table, empty when absent."""
        return self._descend(self._read(key, dict, "a table", {}), (key,))

    def tables(self, key: str) -> list[TomlTable]:
        """An array of tables (``[[key]]``), empty when absent."""
        values = self._read(key, list, f"tables, each headed [[{key}]]", [])
        if not all(isinstance(value, dict) for value in values):
            self.fault(key, "holds something else than tables", f"tables, each headed [[{key}]]")
            return []
        return [self._descend(value, (key, number)) for number, value in enumerate(values)]

    def rows(self, key: str, name: str) -> list[TomlTable]:
        """A list of strings and inline tables; a string stands for a table that has it as ``name``."""
        values = self._read(key, list, "a list", [])
        rows = [{name: value} if isinstance(value, str) else value for value in values]
        if not all(isinstance(row, dict) for row in rows):
            self.fault(key, "holds something else than strings and tables", f'a list of "..." and {{ {name} = "..." }}')
            return []
        return [self._descend(row, (key, number)) for number, row in enumerate(rows)]

    def fault(self, key: str, what: str, expected: str = "") -> None:
        """Note that the value at ``key`` is wrong."""
        path = (*self._path, *filter(None, [key]))
        line = _line_of(self._text, path)
        place = _dotted(path) + (f" (line {line})" if line else "")
        self._faults.append(f"{place} {what}" + (f"; expected {expected}" if expected else ""))

    def finish(self, source: str) -> None:
        """Raise FormatError with every fault of the document, keys that nobody has read among them."""
        self._check_keys()
        if not self._faults:
            return
        shown = self._faults[:MOST_FAULTS]
        more = f"; and {len(self._faults) - MOST_FAULTS} more" if len(self._faults) > MOST_FAULTS else ""
        count = f"{len(self._faults)} faults: " if len(self._faults) > 1 else ""
        raise FormatError(f"{source}: {count}{'; '.join(shown)}{more}")

    def _descend(self, values: Mapping[str, Any], path: Path) -> TomlTable:
        inner = TomlTable(values, self._text, (*self._path, *path), self)
        self._inner.append(inner)
        return inner

    def _read(self, key: str, kind: type[Any], expected: str, default: Any) -> Any:
        self._known.add(key)
        value = self._values.get(key, default)
        if key in self._values and not isinstance(value, kind):
            self.fault(key, f"is {_shown(value)}", expected)
            return default
        return value

    def _check_keys(self) -> None:
        for key in self._values:
            if key not in self._known:
                nearest = get_close_matches(key[:80], self._known, n=1)
                expected = nearest[0] if nearest else f"one of {', '.join(sorted(self._known))}"
                self.fault(key, "is no key that is known here", expected)
        for inner in self._inner:
            inner._check_keys()  # noqa: SLF001  # of the same class


def read_toml(text: str, source: str) -> TomlTable:
    """The document. ``source`` names it in messages. Raises FormatError, with the line, when it is no TOML."""
    if len(text) > LARGEST:
        raise FormatError(f"{source} has {len(text):,} characters", expected=f"at most {LARGEST:,}")
    try:
        return TomlTable(tomllib.loads(text), text)
    except (ValueError, RecursionError) as error:  # RecursionError: arrays within arrays by the thousand
        raise FormatError(f"{source} is not valid TOML: {str(error)[:300]}") from None


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:80]}..."


def _dotted(path: Path) -> str:
    """For people, who count from 1: ``platform 2, accelerator``."""
    words: list[str] = []
    for part in path:
        if isinstance(part, int):
            words[-1] += f" {part + 1}"
        else:
            words.append(part if len(part) <= 80 else f"{part[:80]}...")
    return ", ".join(words)


def _line_of(text: str, path: Path) -> int | None:
    """The line of the key, or of the innermost table around it that stands on a line of its own; None if neither.

    tomllib keeps no lines. This looks for them as a reader does, by headers and the first word of each line, so a
    header within a multi-line string can mislead it: it is for messages alone.
    """
    found: int | None = None
    depth = 0  # how much of the path is matched by the table that the line is in
    counts: dict[str, int] = {}
    headers = {_header(path, length): length for length in range(1, len(path) + 1)}
    for number, line in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line):
            name = header[2].replace('"', "").replace("'", "")
            counts[name] = counts.get(name, -1) + 1
            depth = headers.get((name, counts[name] if header[1] == "[[" else None), -1)
            if depth > 0:
                found = number
        elif 0 <= depth < len(path) and (key := _KEY.match(line)) and path[depth] in key.groups():
            return number
    return found


def _header(path: Path, length: int) -> tuple[str, int | None]:
    """The name and number of the header of the table that the first ``length`` parts of the path lead to."""
    parts = path[:length]
    last = parts[-1]
    return ".".join(str(part) for part in parts if isinstance(part, str)), last if isinstance(last, int) else None
