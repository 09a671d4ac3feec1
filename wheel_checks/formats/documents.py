"""JSON and TOML documents: parsed within bounds, and those that users write with the line of every fault."""

import json
import re
import tomllib
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

from wheel_checks.decode import Check, DecodeError, Path, Policy, decode, place_of
from wheel_checks.errors import FormatError

LARGEST = 1 << 20  # bytes of a document that a user writes; such a document is a page or two
LONGEST = 1_000  # characters of one string in it
WRITTEN = Policy(toml=True, longest=LONGEST)

Ratio = Annotated[float, Check(lambda value: 1 <= value < 1e9, "a number of at least 1, such as 1.2")]

T = TypeVar("T")
D = TypeVar("D")

_HEADER = re.compile(r"\s*(\[\[?)\s*(.+?)\s*\]\]?\s*(?:#.*)?")
MOST_KEY_PARTS = 32
MOST_LONG_KEYS = 10_000
"""Parts of a dotted key, and keys of ten parts and more: tomllib takes the square of their number."""
_PARTS = re.compile(rf"(?<![\w.-])(?:[\w-]+[ \t]*\.[ \t]*){{10,{MOST_KEY_PARTS}}}", re.ASCII)
_STRING_OR_COMMENT = re.compile(r"[\"']|#[^\n]*")
_KEY = re.compile(r"""\s*(?:"([^"]*)"|'([^']*)'|([\w-]+))\s*(?:=|\.)""")


def parse_json(data: bytes, source: str, largest: int, expected: str = "") -> Any:
    """The value of a JSON document. Raises FormatError when it is invalid, or has more than ``largest`` bytes."""
    return _parse(json.loads, data, "JSON", source, largest, expected)


def parse_toml(data: bytes | str, source: str, largest: int, expected: str = "") -> dict[str, Any]:
    """The table of a TOML document, decoded or not. Raises FormatError when it is invalid or larger than ``largest``.

    All TOML of others is parsed here: tomllib alone takes gigabytes for a key of 10,000 parts.
    """
    table: dict[str, Any] = _parse(_load_toml, data, "TOML", source, largest, expected)
    return table


def _load_toml(data: bytes | str) -> dict[str, Any]:
    text = data if isinstance(data, str) else data.decode("utf-8-sig")
    outline = _outline(text)
    for number, found in enumerate(_PARTS.finditer(outline)):
        if found[0].count(".") >= MOST_KEY_PARTS or number >= MOST_LONG_KEYS:
            line = outline.count("\n", 0, found.start()) + 1
            limit = f"more than {MOST_KEY_PARTS} parts" if number < MOST_LONG_KEYS else "too many parts"
            raise ValueError(f"a key has {limit} (line {line})")
    return tomllib.loads(text)


def _outline(text: str) -> str:
    """The document with one letter for each string, and without comments: the same keys in the same lines."""
    kept: list[str] = []
    at = 0
    while found := _STRING_OR_COMMENT.search(text, at):
        kept.append(text[at : found.start()])
        at = found.end()
        if found[0] in ("'", '"'):
            at = string_end(text, found.start())
            kept.append("s" + "\n" * text.count("\n", found.start(), at))
    return "".join([*kept, text[at:]])


def string_end(text: str, start: int) -> int:
    """The position after the TOML string that begins at ``start``: the end of the text if nothing closes it."""
    quote = text[start]
    many = text.startswith(3 * quote, start)
    closing = 3 * quote if many else quote
    position = start + len(closing)
    end = text.find(closing, position)
    while quote == '"' and (escape := text.find("\\", position, max(end, position))) >= 0:
        position = escape + 2
        if position > end:
            end = text.find(closing, position)
    if end < 0:
        return len(text)
    end += len(closing)
    while many and end < len(text) and text[end] == quote:  # at most two, which belong to the text
        end += 1
    return end


def _parse(load: Callable[[Any], Any], data: bytes | str, form: str, source: str, largest: int, expected: str) -> Any:
    if len(data) > largest:
        raise FormatError(f"{source} has more than {largest:,} bytes", expected=expected)
    try:
        return load(data)
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise FormatError(f"{source} is not valid {form}: it is not UTF-8 (line {line})", expected=expected) from None
    except (ValueError, RecursionError) as error:  # ValueError: also a number of thousands of digits
        raise FormatError(f"{source} is not valid {form}: {str(error)[:300]}", expected=expected) from None


def read_toml(data: bytes, source: str, kind: Callable[..., D], make: Callable[[D], T]) -> T:
    """What ``make`` returns for a TOML document, decoded as ``kind``. ``source`` names it in messages.

    Raises FormatError with the faults of the document, those that ``make`` raises as a DecodeError among them, each
    with the line of its key.
    """
    values = parse_toml(data, source, LARGEST)
    try:
        return make(decode(kind, values, WRITTEN))
    except DecodeError as error:
        text = data.decode("utf-8-sig")
        raise DecodeError(error.faults, source, lambda path: _place(text, path)) from None


def _place(text: str, path: Path) -> str:
    line = _line_of(text, path)
    return place_of(path) + (f" (line {line})" if line else "")


def _line_of(text: str, path: Path) -> int | None:
    """The line of the key, or of the innermost table around it on its own line; None if neither.

    tomllib keeps no lines. This looks for them as a reader does, by headers and the first word of each line, so a
    header within a multi-line string can mislead it: it is only for messages.
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
