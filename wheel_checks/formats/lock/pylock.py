"""``pylock.toml`` (PEP 751): a list of packages, each installed if its marker is true."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlsplit

from wheel_checks.errors import FormatError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.formats.index.page import IndexFile, file_from_url
from wheel_checks.formats.lock import tables
from wheel_checks.formats.lock.model import DIRECTORY, PYLOCK, VCS, Lock, LockedPackage
from wheel_checks.formats.lock.tables import MAX_SIZE, MOST_PACKAGES

_NAME = "pylock.toml (PEP 751)"


def parse_pylock(data: bytes, folder: Path) -> tuple[LockedPackage, ...]:
    """The packages of a lock file, with paths relative to ``folder``. Raises FormatError naming a wrong field."""
    return read_pylock(data, folder).packages


def read_pylock(data: bytes, folder: Path) -> Lock:
    """The lock file, with paths relative to ``folder``. Raises FormatError naming the field that PEP 751 forbids."""
    if len(data) > MAX_SIZE:
        raise FormatError(f"the lock has {len(data):,} bytes", expected=f"at most {MAX_SIZE:,}")
    document = parse_toml(data, "the lock", MAX_SIZE, _NAME)
    version = document.get("lock-version")
    if not isinstance(version, str) or version.partition(".")[0] != "1":
        raise FormatError(f"lock-version is {tables.shown(version)}", expected="1.0, or another version 1")
    packages = document.get("packages", [])
    if not isinstance(packages, list) or len(packages) > MOST_PACKAGES:
        raise FormatError("packages is not a list of tables", expected=f"an array of at most {MOST_PACKAGES:,} tables")
    lines = tables.lines_of(data, b"[[packages]]")
    lines = lines if len(lines) == len(packages) else [0] * len(packages)
    chosen = [tables.texts(document, key, "the lock") for key in ("extras", "dependency-groups", "default-groups")]
    return Lock(
        PYLOCK,
        tuple(_package(p, f"packages[{number}]", folder, lines[number]) for number, p in enumerate(packages)),
        requires_python=tables.text(document, "requires-python", "the lock"),
        environments=tables.texts(document, "environments", "the lock"),
        extras=dict.fromkeys(chosen[0], ()),
        groups=chosen[1],
        default_groups=chosen[2],
    )


def _package(entry: object, where: str, folder: Path, line: int) -> LockedPackage:
    table = tables.table(entry, where)
    name = tables.name(table, where)
    wheels = table.get("wheels", [])
    if not isinstance(wheels, list):
        raise FormatError(f"{where}.wheels is not a list", expected="an array of tables")
    entries = [(file, f"{where}.wheels[{number}]") for number, file in enumerate(wheels)]
    entries += [(table[key], f"{where}.{key}") for key in ("sdist", "archive") if key in table]
    source = next((key for key in (VCS, DIRECTORY) if key in table), None)
    place = tables.table(table[source], f"{where}.{source}") if source else {}
    return LockedPackage(
        name,
        tables.version(table, where),
        tuple(_file(file, place, folder) for file, place in entries),
        source,
        "archive" in table,
        tables.marker(table, "marker", where),
        tables.text(table, "index", where) or None,
        str(place.get("url") or place.get("path") or "") or None,
        requires_python=tables.text(table, "requires-python", where),
        line=line,
    )


def _file(entry: object, where: str, folder: Path) -> IndexFile:
    table = tables.table(entry, where)
    url, path = tables.text(table, "url", where), tables.text(table, "path", where)
    try:
        place = url or ((folder / path).absolute().as_uri() if path else "")
        linked = file_from_url(place, "") if place else None
        _ = urlsplit(place).port
    except ValueError:  # characters that no URL or path can contain
        linked = None
    if linked is None:
        raise FormatError(f"{where} names no file", expected="a url (http, https or file) or a path")
    uploaded = table.get("upload-time")
    return IndexFile(
        linked.file_name,
        linked.url,
        tables.digests(tables.table(table.get("hashes", {}), f"{where}.hashes")),
        size=tables.size(table.get("size")),
        upload_time=str(uploaded) if uploaded is not None else "",
    )
