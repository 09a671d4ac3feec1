"""The files that hold settings: the user's own, one that the user names, and that of the tree around a folder.

The tree is the repository around the folder, and without one the folders above it, up to the home folder,
to a folder that anybody may write to, to one of another user, and to another file system, all excluded. What is
above a tree decides nothing: settings for several trees are the user's own.
"""

import os
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.sources.regular_file import descriptor_of, open_regular, read_start
from wheel_checks.sources.repository import repository_of
from wheelproof.cli.configuration.ownership import dubious, is_shared
from wheelproof.cli.options import warn

LARGEST_FILE = 1 << 20  # bytes; a configuration is a page, and anything much longer is not one
NAME = "wheelproof.toml"


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The wheelproof table of a configuration file. ``path`` is None, and the table empty, when there is no file."""

    path: Path | None = None
    table: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class TreeFile(ConfigFile):
    """That of a tree, whose folder is ``root``. ``fault`` says why it is not the user's, "" when it is.

    ``shared`` is True when it is in a folder where anybody makes files: then no one has asked for what it says.
    """

    root: Path = Path("/")
    fault: str = ""
    shared: bool = False


def own_place(environment: Mapping[str, str]) -> Path | None:
    """Where the user's own configuration belongs; None without a home. A relative XDG_CONFIG_HOME counts as unset."""
    for folder in (environment.get("XDG_CONFIG_HOME", ""), os.path.join(environment.get("HOME", ""), ".config")):  # noqa: PTH118  # HOME may be ""
        if Path(folder).is_absolute():
            return Path(folder) / "wheelproof" / NAME
    return None


def read_own(environment: Mapping[str, str]) -> ConfigFile:
    """The user's own configuration, if there is one that this user may read. Raises UsageError when it is malformed."""
    place = own_place(environment)
    if place is None or not _is_readable(place):
        return ConfigFile()
    return read_config(place)


def read_config(path: Path) -> ConfigFile:
    """The configuration in this very file. Raises UsageError if none exists."""
    try:
        content = read_start(path, LARGEST_FILE + 1, given=True)
    except OSError as error:
        raise _unreadable(path, error) from error
    table = _table_of(path, _bounded(path, content))
    if table is None:
        raise UsageError(f"{path} has no table [tool.wheelproof]")
    return ConfigFile(path, table)


def find_config(folder: Path, home: str, trusted: Collection[int]) -> TreeFile:
    """The nearest configuration of the tree around ``folder``. Raises UsageError for a file that cannot be read.

    A file of users who are not ``trusted`` is read anyway, for what would be missing without it. A ``folder`` that this
    user may not enter, as under ``sudo -u nobody``, has none.
    """
    if not os.access(folder, os.X_OK):
        warn([f"the configuration in {folder} is not used: this user may not enter the folder"])
        return TreeFile()
    root = repository_of(folder)
    if root is not None and root.stat().st_dev != folder.stat().st_dev:
        root = None
    for place in _places(folder, root, home, trusted):
        for path in (place / NAME, place / "pyproject.toml"):
            if not _is_readable(path):
                continue
            try:
                file = _of_tree(path, root or place, trusted)
            except UsageError:
                if not (is_shared(place.stat()) and path.lstat().st_uid not in trusted):
                    raise
                continue
            if file is not None:
                return file
    return TreeFile()


def _is_readable(path: Path) -> bool:
    """Whether a file exists and may be opened; that it may not, as under ``sudo -u nobody``, is said once."""
    try:
        os.close(descriptor_of(path))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return False
    except OSError as error:
        warn([f"the configuration file {path} is not used: {error.strerror}"])
        return False
    return True


def _of_tree(path: Path, root: Path, trusted: Collection[int]) -> TreeFile | None:
    """The configuration in a file of a tree; None in a pyproject.toml of other tools, well-formed or not."""
    content, found = _read(path)
    if path.name != NAME and b"wheelproof" not in content:
        return None
    table = _table_of(path, content)
    return None if table is None else TreeFile(path, table, root, dubious(path, found, trusted), is_shared(found[-1]))


def _places(folder: Path, root: Path | None, home: str, trusted: Collection[int]) -> Iterator[Path]:
    """The folders of the tree whose configuration holds in ``folder``, the nearest first."""
    yield folder
    device = folder.stat().st_dev
    for place in folder.parents if folder != root else ():
        found = place.stat()
        if found.st_dev != device or is_shared(found):
            return
        if root is None and (str(place) == home or found.st_uid not in trusted):
            return
        yield place
        if place == root:
            return


def _read(path: Path) -> tuple[bytes, tuple[os.stat_result, ...]]:
    """The bytes of a file, and whose they are: the file's that was read, the link's, the folder's."""
    try:
        with open_regular(path) as file:
            found = (os.fstat(file.fileno()), path.lstat(), path.parent.stat())
            return _bounded(path, file.read(LARGEST_FILE + 1)), found
    except OSError as error:
        raise _unreadable(path, error) from error


def _bounded(path: Path, content: bytes) -> bytes:
    if len(content) > LARGEST_FILE:
        raise UsageError(f"the configuration file {path} is too large", expected=f"at most {LARGEST_FILE} bytes")
    return content


def _unreadable(path: Path, error: OSError) -> UsageError:
    return UsageError(f"the configuration file {path} cannot be read: {error.strerror}")


def _table_of(path: Path, content: bytes) -> Mapping[str, Any] | None:
    from wheel_checks.formats.documents import parse_toml  # most runs have no configuration file

    try:
        document = parse_toml(content, f"the configuration file {path}", LARGEST_FILE)
    except FormatError as error:
        raise UsageError(error.what) from error
    if path.name != "pyproject.toml":
        return document
    tool = document.get("tool", {})
    table = tool.get("wheelproof") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"tool.wheelproof in {path} is not a table")
    return table
