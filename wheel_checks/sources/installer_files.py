"""The configuration files of uv and pip that hold in a folder: where they are, and whose they are."""

import configparser
import functools
import logging
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.sources.regular_file import home_folder, read_start
from wheel_checks.sources.trust import tree_of

TRUE = {"1", "true", "yes", "on", "y", "t"}  # what installers take for a yes
_log = logging.getLogger(__name__)

_LARGEST_FILE = 1 << 20  # bytes; a configuration has a page or two


def flag(environ: Mapping[str, str], name: str) -> bool | None:
    """Whether a variable says yes; None when it is not set."""
    return environ[name].strip().lower() in TRUE if environ.get(name) else None


def uv_tables(environ: Mapping[str, str], cwd: Path) -> Iterator[tuple[Path, dict[str, Any], Path | None]]:
    """Each file of uv that counts: its path, its table, and the tree that it is of (None: the user's, the system's)."""
    if flag(environ, "UV_NO_CONFIG"):
        return
    if environ.get("UV_CONFIG_FILE"):
        path = cwd / environ["UV_CONFIG_FILE"]
        table = _read_toml(path)
        if table is None:
            raise UsageError(f"there is no file {path}", expected="the file that UV_CONFIG_FILE names")
        yield path, table, None
        return
    for folder in (cwd, *cwd.parents) if os.access(cwd, os.X_OK) else ():  # pip sees no files there, and uv stops
        table = _read_toml(folder / "uv.toml")
        if table is not None:
            yield folder / "uv.toml", table, tree_of(folder)
            break
        tool = (_read_toml(folder / "pyproject.toml") or {}).get("tool")
        if isinstance(tool, dict) and isinstance(tool.get("uv"), dict):
            yield folder / "pyproject.toml", tool["uv"], tree_of(folder)
            break
    of_system = [*_xdg_folders(environ), Path("/etc")]
    for folders in ([_user_folder(environ)], of_system):
        found = ((folder / "uv" / "uv.toml", _read_toml(folder / "uv" / "uv.toml")) for folder in folders)
        yield from ((path, table, None) for path, table in found if table is not None)


def pip_sections(environ: Mapping[str, str], cwd: Path) -> dict[str, dict[str, tuple[str, str]]]:
    """The sections "global" and "install" of pip's files: values with the files that set them, the strongest last.

    Raises UsageError for a file that cannot be read.
    """
    sections: dict[str, dict[str, tuple[str, str]]] = {"global": {}, "install": {}}
    named = environ.get("PIP_CONFIG_FILE")
    if named == os.devnull:
        return sections
    home = home_folder(environ)
    site = Path(environ.get("VIRTUAL_ENV") or sys.prefix)
    paths = [*(folder / "pip" / "pip.conf" for folder in reversed(_xdg_folders(environ))), Path("/etc/pip.conf")]
    paths += [home / ".pip" / "pip.conf", _user_folder(environ) / "pip" / "pip.conf"]
    if sys.platform == "darwin":
        support = Path("Library") / "Application Support" / "pip" / "pip.conf"
        paths += ["/" / support, home / support]
    paths += [site / "pip.conf", *([cwd / named] if named else [])]
    for path in paths:  # from the weakest to the strongest
        for section, values in _read_ini(path):
            if section in sections:
                sections[section].update(values)
    return sections


def _user_folder(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("XDG_CONFIG_HOME") or home_folder(environ) / ".config")


def _xdg_folders(environ: Mapping[str, str]) -> list[Path]:
    return [Path(folder) for folder in (environ.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(os.pathsep) if folder]


def _read(path: Path) -> str | None:
    """The text of a configuration file, None if there is no such file, or none that this user may read."""
    try:
        content = read_start(path, _LARGEST_FILE + 1)
        text = content.decode()
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    except OSError as error:
        _warn_once(path, str(error.strerror))
        return None
    except UnicodeDecodeError as error:
        raise UsageError(f"the configuration file {path} cannot be read: {error}", expected="text in UTF-8") from error
    if len(content) > _LARGEST_FILE:
        raise UsageError(f"the configuration file {path} is too long", expected=f"at most {_LARGEST_FILE} bytes")
    return text


@functools.cache
def _warn_once(path: Path, reason: str) -> None:
    _log.warning("wheelproof: the configuration file %s is not used: %s", path, reason)


def _read_toml(path: Path) -> dict[str, Any] | None:
    text = _read(path)
    try:
        return None if text is None else parse_toml(text, str(path), _LARGEST_FILE)
    except FormatError as error:
        raise UsageError(error.what, hint="uv rejects it, too; fix or remove it") from error


def _read_ini(path: Path) -> Iterator[tuple[str, dict[str, tuple[str, str]]]]:
    text = _read(path)
    if text is None:
        return
    parser = configparser.RawConfigParser()
    try:
        parser.read_string(text, source=str(path))
    except configparser.Error as error:
        # the text of the error quotes the file, which may hold a password
        line = getattr(error, "lineno", None) or next((number for number, _ in getattr(error, "errors", ())), "?")
        raise UsageError(
            f"{path} is not a valid pip configuration (see line {line})", hint="fix or remove it"
        ) from error
    for section in parser.sections():
        yield section, {key.replace("_", "-"): (value, str(path)) for key, value in parser.items(section)}
