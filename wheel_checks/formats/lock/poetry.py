"""``poetry.lock``: packages with files by name and hash; since 2.1 each with its groups and its marker.

A lock older than 2.1 (poetry 1.x) does not say which packages are requested, nor their groups: then only the graph of
dependencies is known, and a package that no other depends on is considered requested.
"""

from __future__ import annotations

from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock import tables
from wheel_checks.formats.lock.constraints import specifier_of
from wheel_checks.formats.lock.model import DIRECTORY, POETRY, VCS, Lock, LockedDependency, LockedPackage
from wheel_checks.formats.lock.tables import MAX_SIZE, MOST_DEPENDENCIES, MOST_FILES, MOST_PACKAGES

MAIN = "main"
_KNOWN = ("1", "2")
_FILE, _URL = "file", "url"


def read_poetry(data: bytes) -> Lock:
    """The lock file. Raises FormatError naming the field that poetry would not write."""
    document = parse_toml(data, "the lock", MAX_SIZE, "poetry.lock")
    metadata = tables.table(document.get("metadata"), "metadata")
    version = str(metadata.get("lock-version", ""))
    if version.partition(".")[0] not in _KNOWN:
        raise FormatError(f"metadata.lock-version is {tables.shown(version)}", expected="1.x or 2.x (poetry.lock)")
    entries = tables.rows(document, "package", "the lock", MOST_PACKAGES)
    lines = tables.lines_of(data, b"[[package]]")
    lines = lines if len(lines) == len(entries) else [0] * len(entries)
    apart = tables.table(metadata.get("files", {}), "metadata.files")  # before 2.0
    packages = tuple(_package(e, f"package[{number}]", apart, lines[number]) for number, e in enumerate(entries))
    extras = tables.table(document.get("extras", {}), "extras")
    named: dict[str, tuple[str, ...]] = {canonicalize_name(key): _names(extras, key) for key in extras}
    groups = dict.fromkeys(group for package in packages for group in package.in_groups)
    return Lock(
        POETRY,
        packages,
        requires_python=specifier_of(tables.text(metadata, "python-versions", "metadata")),
        extras=named,
        groups=tuple(groups),
        default_groups=(MAIN,),
        has_groups=bool(groups) or not packages,
    )


def _names(extras: dict[str, Any], key: str) -> tuple[str, ...]:
    """The packages of an extra: names, with constraints in locks of old."""
    return tuple(canonicalize_name(text.partition(" ")[0]) for text in tables.texts(extras, key, "extras"))


def _package(entry: object, where: str, apart: dict[str, Any], line: int) -> LockedPackage:
    table = tables.table(entry, where)
    name = tables.name(table, where)
    source = tables.table(table.get("source", {}), f"{where}.source")
    kind, url = tables.text(source, "type", where), tables.text(source, "url", where)
    own = table.get("files", apart.get(name, apart.get(tables.text(table, "name", where), [])))
    files = _files(own, f"{where}.files", url if kind == _URL else "")
    groups, marker, markers = _groups(table, where)
    return LockedPackage(
        name,
        tables.version(table, where),
        files,
        VCS if kind == "git" else DIRECTORY if kind in (DIRECTORY, _FILE) else None,
        kind == _URL,
        marker,
        registry=url if kind == "legacy" else None,
        origin=url or None,
        requires_python=specifier_of(tables.text(table, "python-versions", where)),
        dependencies=tuple(_dependencies(table, where)),
        in_groups=groups,
        group_markers=markers,
        is_optional=table.get("optional") is True,
        line=line,
    )


def _groups(table: dict[str, Any], where: str) -> tuple[tuple[str, ...], str, dict[str, str]]:
    """The groups of a package, its common marker, and the markers of single groups."""
    markers = table.get("markers", "")
    by_group: dict[str, str] = {}
    if isinstance(markers, dict):
        by_group = {canonicalize_name(group): tables.marker(markers, group, f"{where}.markers") for group in markers}
        markers = ""
    found = tuple(map(canonicalize_name, tables.texts(table, "groups", where)))
    return found, markers if not markers else tables.marker(table, "markers", where), by_group


def _files(entries: object, where: str, url: str) -> tuple[IndexFile, ...]:
    if not isinstance(entries, list) or len(entries) > MOST_FILES:
        raise FormatError(f"{where} is not a list", expected=f"an array of at most {MOST_FILES:,} tables")
    found = []
    for entry in entries:
        table = tables.table(entry, where)
        hashes = tables.digest(tables.text(table, "hash", where))
        file = tables.named_file(tables.text(table, "file", where), hashes, where)
        found.append(IndexFile(file.file_name, tables.file_at(url, where).url, hashes) if url else file)
    if url and not found:
        found.append(tables.file_at(url, where))
    return tuple(found)


def _dependencies(table: dict[str, Any], where: str) -> list[LockedDependency]:
    """``name = ">=1"``, ``name = { version, markers, extras, optional }``, or a list of these."""
    found = []
    rows = tables.table(table.get("dependencies", {}), f"{where}.dependencies")
    if len(rows) > MOST_DEPENDENCIES:
        raise FormatError(f"{where}.dependencies has {len(rows):,} keys", expected=f"at most {MOST_DEPENDENCIES:,}")
    for key, value in rows.items():
        name = tables.project(key, f"{where}.dependencies")
        for each in value if isinstance(value, list) else [value]:
            place = f"{where}.dependencies.{name}"
            if isinstance(each, str):
                found.append(LockedDependency(name, specifier=specifier_of(each)))
                continue
            row = tables.table(each, place)
            if row.get("optional") is True and "extra ==" not in str(row.get("markers", "")):
                continue  # only with an extra of the package
            extras = tuple(map(canonicalize_name, tables.texts(row, "extras", place)))
            marker = tables.marker(row, "markers", place)
            found.append(
                LockedDependency(name, extras, marker, specifier=specifier_of(tables.text(row, "version", place)))
            )
    return found
