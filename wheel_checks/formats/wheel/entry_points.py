"""``entry_points.txt`` (entry points specification): which names installers make scripts of, and what these run."""

from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.errors import FormatError

MAX_SIZE = 1024 * 1024
MAX_ENTRIES = 20_000
"""Entry points of a wheel; apache-airflow and home automation have some hundreds."""


@dataclass(frozen=True, slots=True)
class EntryPoint:
    """One line ``name = value`` of a group, ``line`` from 1."""

    group: str
    name: str
    value: str
    line: int


@dataclass(frozen=True, slots=True)
class EntryPoints:
    """All of them in the order of the file, and ``(line, sentence)`` for lines that are not entry points.

    ``unreadable`` are ``(line, sentence)`` of what ends an install by pip or uv.
    """

    entries: tuple[EntryPoint, ...]
    faults: tuple[tuple[int, str], ...] = ()
    unreadable: tuple[tuple[int, str], ...] = ()


def parse_entry_points(data: bytes) -> EntryPoints:
    """The entry points. Raises FormatError for a file that is too large.

    As for importlib.metadata, and so for pip, an indented line with a sign is an entry point; as for configparser one
    without belongs to the value before it.
    """
    if len(data) > MAX_SIZE:
        raise FormatError(f"entry_points.txt has {len(data):,} bytes", expected=f"at most {MAX_SIZE:,}")
    entries: list[EntryPoint] = []
    faults: list[tuple[int, str]] = []
    group = ""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        text = line.strip()
        if not text or text[0] in "#;":
            continue
        name, sign, value = (part.strip() for part in text.partition("="))
        if text.startswith("[") and text.endswith("]"):
            group = text[1:-1].strip()
        elif line[:1].isspace() and not sign and entries and entries[-1].group == group:
            last = entries.pop()
            entries.append(EntryPoint(last.group, last.name, f"{last.value}\n{text}", last.line))
        elif not sign or not name or not group:
            faults.append((number, f"line {number} is {text[:200]!r}; expected a group, or name = module:object"))
        else:
            entries.append(EntryPoint(group, name, value, number))
        if len(entries) > MAX_ENTRIES or len(faults) > MAX_ENTRIES:
            raise FormatError("entry_points.txt has too many lines", expected=f"at most {MAX_ENTRIES:,} entry points")
    return EntryPoints(tuple(entries), tuple(faults), tuple(_unreadable(data)))


def _unreadable(data: bytes) -> Iterator[tuple[int, str]]:
    """What pip's reader (importlib.metadata) or uv's reader of INI files cannot read, each line on its own for pip."""
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        yield data.count(b"\n", 0, error.start) + 1, "the line is not UTF-8"
        return
    groups, names = set[str](), set[str]()
    for number, line in enumerate(data.decode("utf-8").splitlines(), 1):
        text = line.strip()
        if not text or text[0] == "#":
            continue
        if text[0] == "[":
            if not text.endswith("]") or not text[1:-1].strip():
                yield number, f"{text[:200]!r} is not a group"
            elif text in groups:
                yield number, f"the group {text[:200]} occurs twice"
            groups.add(text)
            names = set()
        elif not groups and text[0] != ";":
            yield number, "the line is in no group"
        elif text[0] != ";" and (name := text.partition("=")[0].strip()) in ("", *names):
            yield number, f"{text[:200]!r} has no name" if not name else f"{name[:200]!r} occurs twice in its group"
        elif groups and "=" not in text:
            yield number, f"{text[:200]!r} has no value; pip treats every line except # comments as an entry point"
        else:
            names.add(text.partition("=")[0].strip())
