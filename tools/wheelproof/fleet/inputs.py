"""Where the reports are: files, folders of them, standard input."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wheel_checks.errors import FormatError, NotFoundError, UsageError
from wheel_checks.sources.regular_file import open_regular
from wheelproof.fleet.documents import read_documents

SUFFIXES = (".json", ".jsonl", ".ndjson")
STANDARD_INPUT = "standard input"


@dataclass(frozen=True, slots=True)
class Document:
    """A JSON document, or why there isn't one. ``source`` is its file, and which of several there; ``label`` what its
    name says of the host ("" when it says nothing).
    """

    source: str
    label: str
    content: Any | FormatError


def find_inputs(paths: Sequence[str], *, may_be_empty: bool = False) -> list[str]:
    """The files that ``paths`` name, those in folders and below in order of their names; "-" stays what it is.

    Raises NotFoundError for a path that does not exist and (unless it ``may_be_empty``) for a folder without a report,
    UsageError for "-" twice.
    """
    found: list[str] = []
    for path in paths:
        if path == "-":
            if path in found:
                raise UsageError("standard input can be read only once")
            found.append(path)
        elif Path(path).is_dir():
            inside = list(_files_below(path))
            if not inside and not may_be_empty:
                raise NotFoundError(f"no report in the folder {path}", expected=f"files named *{', *'.join(SUFFIXES)}")
            found += inside
        elif os.path.lexists(path):
            found.append(path)
        else:
            raise NotFoundError(
                f"there is no {path}", expected="reports as `wheelproof doctor --format json` writes them"
            )
    return list(dict.fromkeys(found))


def size_of(inputs: Sequence[str]) -> int:
    """The bytes of all inputs; 0 where standard input is one of them, or anything that is no regular file."""
    sizes = [Path(name).stat().st_size if name != "-" and Path(name).is_file() else 0 for name in inputs]
    return sum(sizes) if all(sizes) else 0


def read_inputs(inputs: Sequence[str], count: Callable[[int], None]) -> Iterator[Document]:
    """Every document of every input. ``count`` is told the number of bytes of each file when it has been read."""
    for name in inputs:
        if name == "-":
            if sys.stdin is None:  # what Python makes of `<&-`
                yield Document(STANDARD_INPUT, "", FormatError("it is closed"))
            else:
                yield from _documents(_Counted(sys.stdin.buffer, count), STANDARD_INPUT, "")
            continue
        try:
            with open_regular(name, given=True) as stream:
                yield from _documents(_Counted(stream, count), name, _label(name))
        except (OSError, ValueError) as error:  # ValueError: a null byte in the name
            yield Document(name, "", FormatError(f"it cannot be read: {getattr(error, 'strerror', None) or error}"))


class _Counted:
    """A stream that says how much was read of it."""

    def __init__(self, stream: BinaryIO, count: Callable[[int], None]) -> None:
        self._stream, self._count = stream, count

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._count(len(data))
        return data


def _documents(stream: Any, source: str, label: str) -> Iterator[Document]:
    first: Any = None
    number = 0
    for number, content in enumerate(read_documents(stream), 1):
        if number == 1:
            first = content
            continue
        if number == 2:
            yield Document(f"{source}, document 1", "", first)
        yield Document(f"{source}, document {number}", "", content)
    if number == 1:
        yield Document(source, label, first)
    elif number == 0:
        yield Document(source, label, FormatError("it is empty"))


def _files_below(folder: str) -> Iterator[str]:
    """Regular files only: opening a pipe would wait for a writer."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(files):
            path = Path(place, name)
            if name.endswith(SUFFIXES) and not name.startswith(".") and path.is_file():
                yield str(path)


def _label(name: str) -> str:
    """``reports/node-17.json``: node-17. A name without such an ending, such as /dev/fd/63, says nothing."""
    path = Path(name)
    return path.stem if path.suffix in SUFFIXES else ""
