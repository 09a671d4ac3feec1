"""Reading files of the kernel and of other people: bounded, never waiting, never raising."""

import grp
import os
import re
from pathlib import Path

from wheel_checks.sources.regular_file import read_start

LARGEST = 1 << 20  # bytes


def text_of(path: Path, limit: int = LARGEST) -> str:
    """The beginning of a file; "" for one that is not present or cannot be read. A named pipe does not make it wait."""
    try:
        return read_start(path, limit).decode(errors="replace")
    except OSError:  # also a security label where no module gives one
        return ""


def first_line(path: Path) -> str:
    """The first line of a file without its end, "" likewise."""
    return next(iter(text_of(path, 4096).splitlines()), "").strip()


def found_in(text: str, pattern: str) -> str:
    """What the first group of a pattern matches, ^ and $ being those of lines; "" when nothing does."""
    match = re.search(pattern, text, re.MULTILINE)
    return match[1] if match else ""


def group_name(number: int) -> str:
    """The name of a group of users, its number for one without a name."""
    try:
        return grp.getgrgid(number).gr_name
    except KeyError:
        return str(number)


def names_in(folder: Path, limit: int = 4096) -> list[str]:
    """The names in a folder, sorted; none when it is not present or may not be listed."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for _, entry in zip(range(limit), entries, strict=False))
    except OSError:
        return []
