"""``uv.lock``: a graph from the projects of a workspace to files, with markers on its edges.

If extras or groups conflict, markers name them as ``extra == 'extra-6-veomni-gpu'``, with the length of the project's
name before it (uv's ``universal_marker.rs``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock import tables
from wheel_checks.formats.lock.model import DIRECTORY, PROJECT, UV, VCS, Lock, LockedDependency, LockedPackage, Member
from wheel_checks.formats.lock.tables import MAX_SIZE, MOST_DEPENDENCIES, MOST_FILES, MOST_PACKAGES

KNOWN_VERSION = 1
_LOCAL = ("editable", "virtual", "directory")


def read_uv(data: bytes, folder: Path) -> Lock:
    """The lock file, with paths relative to ``folder``. Raises FormatError naming the field uv would not write."""
    document = parse_toml(data, "the lock", MAX_SIZE, "uv.lock")
    if document.get("version") != KNOWN_VERSION:
        raise FormatError(f"version is {tables.shown(document.get('version'))}", expected=f"{KNOWN_VERSION} (uv.lock)")
    entries = tables.rows(document, "package", "the lock", MOST_PACKAGES)
    lines = tables.lines_of(data, b"[[package]]")
    lines = lines if len(lines) == len(entries) else [0] * len(entries)
    manifest = tables.table(document.get("manifest", {}), "manifest")
    members = [tables.project(m, "manifest.members") for m in tables.texts(manifest, "members", "manifest")]
    packages = [
        _package(entry, f"package[{number}]", folder, members, lines[number]) for number, entry in enumerate(entries)
    ]
    if sum(len(package.files) for package in packages) > MOST_FILES:
        raise FormatError("the lock names too many files", expected=f"at most {MOST_FILES:,}")
    root = [p.name for p in packages if p.origin in ("editable+.", "virtual+.", "directory+.")]
    roots = root or members
    groups = tables.table(manifest.get("dependency-groups", {}), "manifest.dependency-groups")
    chosen = [p for p in packages if p.name in roots and p.source == PROJECT]
    development: dict[str, tuple[LockedDependency, ...]] = {}
    for key in groups:
        development[canonicalize_name(key)] = _edges(groups, key, "manifest.dependency-groups")
    return Lock(
        UV,
        tuple(packages),
        tuple(roots),
        requirements=_edges(manifest, "requirements", "manifest"),
        development=development,
        requires_python=tables.text(document, "requires-python", "the lock"),
        environments=tables.texts(document, "supported-markers", "the lock"),
        forks=tables.texts(document, "resolution-markers", "the lock"),
        extras={extra: () for p in chosen for extra in (*p.optional, *p.extras)},
        groups=tuple(dict.fromkeys([*development, *(group for p in chosen for group in p.development)])),
        conflicts=tuple(_conflicts(document)),
    )


def _package(entry: object, where: str, folder: Path, members: list[str], line: int) -> LockedPackage:
    table = tables.table(entry, where)
    name = tables.name(table, where)
    source = tables.table(table.get("source", {}), f"{where}.source")
    origin = _origin(source)
    kind, _, place = (origin or "").partition("+")
    files = [_file(f, f"{where}.wheels", folder, source) for f in tables.rows(table, "wheels", where, MOST_FILES)]
    if "sdist" in table:
        files.append(_file(table["sdist"], f"{where}.sdist", folder, source))
    own = kind in _LOCAL and (place == "." or name in members)
    optional = tables.table(table.get("optional-dependencies", {}), f"{where}.optional-dependencies")
    development = tables.table(table.get("dev-dependencies", {}), f"{where}.dev-dependencies")
    metadata = table.get("metadata", {})
    stated = tables.texts(metadata, "provides-extras", where) if isinstance(metadata, dict) else ()
    return LockedPackage(
        name,
        tables.version(table, where),
        tuple(file for file in files if file is not None),
        PROJECT if own else DIRECTORY if kind in _LOCAL else VCS if kind == "git" else None,
        kind in ("url", "path"),
        registry=place if kind == "registry" else None,
        origin=origin,
        dependencies=_edges(table, "dependencies", where),
        optional={canonicalize_name(key): _edges(optional, key, f"{where}.optional-dependencies") for key in optional},
        development={canonicalize_name(key): _edges(development, key, f"{where}.dev") for key in development},
        forks=tables.texts(table, "resolution-markers", where),
        extras=tuple(map(canonicalize_name, stated)),
        line=line,
    )


def _origin(source: dict[str, Any]) -> str | None:
    """The source as one text, by which edges and packages are compared."""
    for kind, place in source.items():
        if isinstance(place, str) and kind in ("registry", "git", "url", "path", *_LOCAL):
            return f"{kind}+{place}"
    return None


def _file(entry: object, where: str, folder: Path, source: dict[str, Any]) -> IndexFile | None:
    table = tables.table(entry, where)
    url, path = tables.text(table, "url", where), tables.text(table, "path", where)
    hashes = tables.digest(tables.text(table, "hash", where))
    if not url and isinstance(source.get("url"), str):
        url = source["url"]
    if not url and not path:
        path = source["path"] if isinstance(source.get("path"), str) else ""
    if url:
        linked = tables.file_at(url, where)
    elif path:
        registry = source.get("registry")
        base = folder / registry if isinstance(registry, str) and "://" not in registry else folder
        linked = tables.file_at(_uri(base / path, where), where)
    else:
        named = tables.text(table, "filename", where)
        return tables.named_file(named, hashes, where) if named else None
    return IndexFile(linked.file_name, linked.url, hashes or linked.hashes, size=tables.size(table.get("size")))


def _uri(path: Path, where: str) -> str:
    try:
        return path.absolute().as_uri()
    except ValueError:
        raise FormatError(f"{where} names no file", expected="a url (http, https or file) or a path") from None


def _edges(owner: dict[str, Any], key: str, where: str) -> tuple[LockedDependency, ...]:
    found = []
    for entry in tables.rows(owner, key, where, MOST_DEPENDENCIES):
        place = f"{where}.{key}"
        table = tables.table(entry, place)
        extras = table.get("extra", table.get("extras", []))
        if not isinstance(extras, list) or not all(isinstance(extra, str) for extra in extras):
            raise FormatError(f"{place}.extra is not a list of strings", expected="an array of extras")
        found.append(
            LockedDependency(
                tables.name(table, place),
                tuple(map(canonicalize_name, extras)),
                tables.marker(table, "marker", place),
                tables.version(table, place) or None,
                _origin(tables.table(table.get("source", {}), f"{place}.source")),
            )
        )
    return tuple(found)


def _conflicts(document: dict[str, Any]) -> list[tuple[Member, ...]]:
    found = []
    for entry in tables.rows(document, "conflicts", "the lock", MOST_PACKAGES):
        rows = entry if isinstance(entry, list) else []
        members = [tables.table(row, "conflicts") for row in rows]
        found.append(
            tuple(
                Member(
                    canonicalize_name(tables.text(m, "package", "conflicts")),
                    canonicalize_name(tables.text(m, "extra", "conflicts")) or None,
                    canonicalize_name(tables.text(m, "group", "conflicts")) or None,
                )
                for m in members
            )
        )
    return found
