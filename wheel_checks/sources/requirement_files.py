"""Files of requirements, and all that they include: looked at before an installer opens them and waits for a pipe."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from wheel_checks.errors import UsageError
from wheel_checks.sources.regular_file import read_whole

LARGEST = 16 << 20  # bytes of one file; the hashes of 500 packages are 2 MB
MOST = 1000  # files
_INCLUDES = re.compile(r"(?:-r|-c|--(?:requirement|constraint)s?(?![a-z-]))[ \t=]*")
_EDITABLE = re.compile(r"(?:-e|--editable(?![a-z-]))[ \t=]*")
_COMMENT = re.compile(r"(?:^|[ \t])#")
_PROJECT_FILES = ("pyproject.toml", "setup.cfg", "setup.py")


def read_requirements_file(path: Path) -> bytes:
    """The content of a file of requirements. Raises UsageError when it cannot be read."""
    try:
        return read_whole(path, LARGEST)
    except OSError as error:
        raise UsageError(f"the file {path} cannot be read: {error.strerror}") from error


def check_included(files: Iterable[Path]) -> None:
    """Raise UsageError unless ``files`` and what they include, projects in folders too, can be read without waiting.

    Of what is missing only ``files`` are an error here: the installer has a sentence for the others.
    """
    waiting, seen = list(files), set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > MOST:
            raise UsageError(f"{path} is one of too many files", expected=f"at most {MOST:,} that include one another")
        content = read_requirements_file(path)
        if path.suffix not in {".toml", ".cfg", ".py"}:
            waiting += _named(content.decode("utf-8", "surrogateescape"), path.parent)


def _named(text: str, folder: Path) -> Iterator[Path]:
    """The files that the lines of a requirements file name, and the metadata of the projects."""
    for line in text.splitlines():
        bare = _COMMENT.split(line, maxsplit=1)[0].strip()
        included, editable = _INCLUDES.match(bare), _EDITABLE.match(bare)
        option = included or editable
        name = bare[option.end() if option else 0 :].strip("\"'")
        if not name or "://" in name or "${" in name:
            continue
        if included:
            names = [name]
        elif editable or name.startswith((".", "/")):
            names = [f"{name.partition('[')[0]}/{file}" for file in _PROJECT_FILES]
        else:
            continue
        yield from (folder / one for one in names if (folder / one).exists())
