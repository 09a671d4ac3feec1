"""Find files with requirements in a tree, honouring .gitignore. Links to folders are not followed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from wheel_checks.errors import NotFoundError, SourceError
from wheel_checks.sources.regular_file import read_start
from wheelproof.pins.documents.reading import INSTALLS, kind_of
from wheelproof.pins.documents.source import LARGEST
from wheelproof.pins.rewrite.files.gitignore import Ignored, read_ignored

# Never sources: version control, environments, caches, installed or built files.
ALWAYS_SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", ".tox", ".nox", "node_modules", "__pycache__", "site-packages", ".eggs"}
)
VENDORED = frozenset({"vendor", "vendored", "_vendor", "third_party", "3rdparty", "thirdparty", "external"})
TEST_DATA = frozenset({"testdata", "test_data", "fixtures", "test-data", "testdatas"})
LINKED_FOLDER = "linked folder"  # instead of a kind: a link to a folder
_SCRIPT_MARKER = b"# /// script"


def find_files(paths: Iterable[Path], *, skip_vendored: bool = False) -> Iterator[tuple[Path, str]]:
    """Every file with requirements, and its kind: a file as named, a folder searched in order of names.

    A link to a folder is not searched, and yielded as a LINKED_FOLDER; a broken link counts as a file by its name.
    ``skip_vendored`` skips vendored projects and test data. Raises NotFoundError for a path that does not exist,
    SourceError for a folder that cannot be read.
    """
    for path in paths:
        if path.is_dir():
            yield from _in_folder(path, skip_vendored=skip_vendored)
        elif path.exists() or path.is_symlink():
            yield path, ""
        else:
            raise NotFoundError(f"there is no {path}", expected="a file or a folder")


def _in_folder(root: Path, *, skip_vendored: bool) -> Iterator[tuple[Path, str]]:
    skipped = ALWAYS_SKIPPED | (VENDORED | TEST_DATA if skip_vendored else frozenset())
    stack: list[tuple[str, str, tuple[Ignored, ...]]] = [(str(root), "", ())]
    while stack:
        folder, inside, ignored = stack.pop()
        try:
            with os.scandir(folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            raise SourceError(f"the folder {folder} cannot be read: {error.strerror or error}") from error
        if any(entry.name == ".gitignore" for entry in entries):
            ignored = (*ignored, read_ignored(Path(folder, ".gitignore"), inside))
        folders = []
        for entry in entries:
            path = f"{inside}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                taken = entry.name not in skipped and not os.path.lexists(f"{entry.path}/pyvenv.cfg")  # speed
                if taken and not _is_ignored(ignored, path, is_folder=True):
                    folders.append((entry.path, f"{path}/", ignored))
            elif (kind := _kind_of_entry(entry, path)) and not _is_ignored(ignored, path, is_folder=False):
                yield Path(entry.path), kind
        stack += reversed(folders)


def _kind_of_entry(entry: os.DirEntry[str], path: str) -> str:
    """The kind of an entry that is not a folder; "" for a file without requirements."""
    if entry.is_symlink() and Path(entry.path).is_dir():  # entry.is_dir() raises for a link in a loop
        return "" if entry.name in ALWAYS_SKIPPED else LINKED_FOLDER
    kind = kind_of(Path(path), named=False)
    if not kind or not (entry.is_symlink() or entry.is_file()):
        return ""
    if kind == "yaml":
        return "pipeline" if _has_commands(Path(entry.path)) else ""
    return "" if kind == "script" and not _has_metadata(Path(entry.path)) else kind


def _is_ignored(ignored: tuple[Ignored, ...], path: str, *, is_folder: bool) -> bool:
    """Whether the innermost .gitignore with a matching pattern ignores the path."""
    opinions = (patterns.opinion(path, is_folder=is_folder) for patterns in reversed(ignored))
    return next((opinion for opinion in opinions if opinion is not None), False)


def _has_metadata(path: Path) -> bool:
    """Whether a Python file has a block of script metadata (PEP 723)."""
    try:
        return _SCRIPT_MARKER in read_start(path, LARGEST)
    except OSError:
        return True  # reading it says why


def _has_commands(path: Path) -> bool:
    """Whether a YAML file of an unknown kind has a command that installs something."""
    try:
        return INSTALLS.search(read_start(path, LARGEST)) is not None
    except OSError:
        return True  # reading it says why
