"""A lock file for a set of projects: ``pylock.toml`` (PEP 751), as far as resolvers write it for one platform."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from packaging.utils import InvalidName, canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.formats.index_page import IndexFile, file_from_url

MAX_SIZE = 32 << 20  # bytes; the lock of 200 packages has 100 kB
VCS, DIRECTORY = "vcs", "directory"  # the sources of packages that are no file
_MAX_PACKAGES = 20_000
_SHORTEST_DIGEST = 32  # hexadecimal digits, of MD5


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One package of a lock.

    ``version`` is "" when the lock tells none (a direct reference); ``files`` are its wheels and its source archive;
    ``source`` is "" for files, else "vcs" or "directory": a package that is no file. ``direct`` is True for a file that
    was named by a URL or a path instead of being chosen from an index. ``marker`` is PEP 508's, "" when it is always
    installed.
    """

    name: str
    version: str
    files: tuple[IndexFile, ...]
    source: str = ""
    direct: bool = False
    marker: str = ""


def parse_pylock(data: bytes, folder: Path) -> tuple[LockedPackage, ...]:
    """The packages of a lock file, in their order. ``folder`` is where the file lies: its paths start there.

    Raises FormatError naming the field that is not what PEP 751 says.
    """
    if len(data) > MAX_SIZE:
        raise FormatError(f"the lock has {len(data)} bytes", expected=f"at most {MAX_SIZE}")
    try:
        document = tomllib.loads(data.decode())
    except (ValueError, RecursionError) as error:  # malformed TOML and malformed UTF-8 are both ValueErrors
        raise FormatError(f"the lock is not valid TOML: {error}", expected="pylock.toml (PEP 751)") from None
    version = document.get("lock-version")
    if not isinstance(version, str) or version.partition(".")[0] != "1":
        raise FormatError(f"lock-version is {version!r}", expected="1.0, or another version 1")
    packages = document.get("packages", [])
    if not isinstance(packages, list) or len(packages) > _MAX_PACKAGES:
        raise FormatError("packages is no list of tables", expected=f"an array of at most {_MAX_PACKAGES} tables")
    return tuple(_package(package, f"packages[{number}]", folder) for number, package in enumerate(packages))


def _package(entry: object, where: str, folder: Path) -> LockedPackage:
    table = _table(entry, where)
    name = _text(table, "name", where)
    try:
        canonicalize_name(name, validate=True)
    except InvalidName:
        raise FormatError(f"{where}.name is {name[:200]!r}", expected="the name of a project") from None
    wheels = table.get("wheels", [])
    if not isinstance(wheels, list):
        raise FormatError(f"{where}.wheels is no list", expected="an array of tables")
    entries = [(file, f"{where}.wheels[{number}]") for number, file in enumerate(wheels)]
    entries += [(table[key], f"{where}.{key}") for key in ("sdist", "archive") if key in table]
    return LockedPackage(
        canonicalize_name(name),
        _text(table, "version", where),
        tuple(_file(file, place, folder) for file, place in entries),
        next((key for key in (VCS, DIRECTORY) if key in table), ""),
        "archive" in table,
        _text(table, "marker", where),
    )


def _file(entry: object, where: str, folder: Path) -> IndexFile:
    table = _table(entry, where)
    url, path = _text(table, "url", where), _text(table, "path", where)
    try:
        place = url or ((folder / path).absolute().as_uri() if path else "")
        linked = file_from_url(place, "") if place else None
        _ = urlsplit(place).port
    except ValueError:  # what no URL and no path can hold
        linked = None
    if linked is None:
        raise FormatError(f"{where} names no file", expected="a url (http, https or file) or a path")
    hashes, size, uploaded = table.get("hashes", {}), table.get("size"), table.get("upload-time")
    digests = {k: v.lower() for k, v in _table(hashes, f"{where}.hashes").items() if isinstance(v, str)}
    return IndexFile(
        linked.file_name,
        linked.url,
        {k: v for k, v in digests.items() if len(v) >= _SHORTEST_DIGEST and set(v) <= set("0123456789abcdef")},
        size=size if isinstance(size, int) and not isinstance(size, bool) and size >= 0 else None,
        upload_time=str(uploaded) if uploaded is not None else "",
    )


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise FormatError(f"{where} is of type {type(value).__name__}", expected="a table")
    return value


def _text(table: dict[str, Any], key: str, where: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise FormatError(f"{where}.{key} is of type {type(value).__name__}", expected="a string")
    return value
