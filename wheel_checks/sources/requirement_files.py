"""Files of requirements, and all that they include: looked at before an installer opens them.

It would wait for a pipe. And it would run code: a file can ask for a build in more ways than the options of pip and uv
forbid. In November 2026 pip builds what a path or a URL names in spite of ``--only-binary :all:``, and what
``--no-binary`` names in the file, wherever it stands; uv builds editable projects, and what ``--no-binary`` or the
table of a script names, in spite of ``--no-build``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement

from wheel_checks.errors import SourceError, UsageError
from wheel_checks.sources.regular_file import read_whole

LARGEST = 16 << 20  # bytes of one file; the hashes of 500 packages are 2 MB
MOST = 1000  # files
_INCLUDES = re.compile(r"(?:-r|-c|--(?:requirement|constraint)s?(?![a-z-]))[ \t=]*")
_EDITABLE = re.compile(r"(?:-e|--editable(?![a-z-]))[ \t=]*")
_COMMENT = re.compile(r"(?:^|[ \t])#")
# What an option line may be, all of it. A second option, an abbreviation or a quoted option is something else to pip.
_VALUE = r"""(?:[^\s"'\\]+|"[^"\\]*"|'[^'\\]*')"""
_HASH = r"--hash(?:=|\s+)[a-z0-9]+:[0-9a-fA-F]+"
_HARMLESS = re.compile(
    rf"(?:-r|-c|-i|-f)\s*{_VALUE}"
    rf"|--(?:requirement|constraint|index-url|extra-index-url|find-links|trusted-host)(?:=|\s+){_VALUE}"
    r"|--only-binary(?:=|\s+)(?!\S*:none:)[^\s\"'\\]+"
    rf"|--(?:no-index|pre|prefer-binary|require-hashes)|(?:{_HASH}\s*)+"
)
_HASHES = re.compile(rf"(?:\s+{_HASH})*")
_REMOTE = re.compile(r"(?:-r|-c|--requirement|--constraint)\b.*(?:://|\$\{)")
_CODING = re.compile(rb"\A(?:[^\n]*\n)?[ \t\f]*#.*?coding[:=][ \t]*+(?!utf-?8|ascii|latin-1)", re.IGNORECASE)
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
    for _ in _included(files):
        pass


def refuse_builds(files: Iterable[Path], *, pip: bool = False) -> None:
    """Raise SourceError when an installer that is to build nothing would, for what a line of these files asks.

    ``pip`` is for pip, which also builds what a path or a URL names. uv itself refuses to do that.
    """
    for path, content in _included(files):
        if path.suffix == ".toml" or path.name in _PROJECT_FILES:
            continue  # of a project both refuse to build what they would have to
        if path.suffix == ".py":
            raise _needs_build(path, "it is a script, whose own table may ask for builds")
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise _needs_build(path, "it is no UTF-8, and installers disagree about what it says") from None
        if _CODING.match(content):
            raise _needs_build(path, "its comment names an encoding, which not all installers obey")
        for line in dict.fromkeys([*text.splitlines(), *re.sub(r"\\[ \t]*\r?\n", "", text).splitlines()]):
            bare = _COMMENT.split(line, maxsplit=1)[0].strip().removesuffix("\\").strip()
            if bare and _asks_for_build(bare, pip=pip):
                raise _needs_build(path, f"`{bare[:200]}`")


def _asks_for_build(line: str, *, pip: bool) -> bool:
    """Whether a line may make an installer build; for one that is not understood, yes."""
    if line.startswith("-"):
        return not _HARMLESS.fullmatch(line) or bool(_REMOTE.match(line))
    option = re.search(r"\s-", line)
    requirement, options = (line[: option.start()], line[option.start() :]) if option else (line, "")
    return not _HASHES.fullmatch(options.rstrip()) or (pip and is_built(requirement.strip()))


def is_built(requirement: str) -> bool:
    """Whether pip builds what a requirement names: a path or a URL that is no wheel."""
    try:
        place = Requirement(requirement).url
    except InvalidRequirement:
        place = requirement.partition(";")[0].strip()
    return place is not None and not place.partition("#")[0].partition("?")[0].partition("[")[0].endswith(".whl")


def _needs_build(path: Path, what: str) -> SourceError:
    return SourceError(
        f"{path} may have the installer build, which runs code: {what}",
        expected="names, versions and wheels",
        hint="leave it out, or build a wheel and name that",
    )


def _included(files: Iterable[Path]) -> Iterator[tuple[Path, bytes]]:
    """Each file with its content. Raises UsageError as :func:`check_included`."""
    waiting, seen = list(files), set[Path]()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        if len(seen) > MOST:
            raise UsageError(f"{path} is one of too many files", expected=f"at most {MOST:,} that include one another")
        content = read_requirements_file(path)
        yield path, content
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
