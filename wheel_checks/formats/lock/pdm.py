"""``pdm.lock``: packages with files by name or URL, the groups they belong to, and markers.

Before ``inherit_metadata`` became a strategy (pdm 2.10) the lock says neither groups nor markers of packages: then only
the graph is known.
"""

from __future__ import annotations

from typing import Any

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock import tables
from wheel_checks.formats.lock.model import DIRECTORY, PDM, VCS, Lock, LockedPackage
from wheel_checks.formats.lock.tables import MAX_SIZE, MOST_DEPENDENCIES, MOST_FILES, MOST_PACKAGES

DEFAULT = "default"
_KNOWN = "4"
_REPOSITORIES = ("git", "hg", "svn", "bzr")


def read_pdm(data: bytes) -> Lock:
    """The lock file. Raises FormatError naming the field that pdm would not write."""
    document = parse_toml(data, "the lock", MAX_SIZE, "pdm.lock")
    metadata = tables.table(document.get("metadata"), "metadata")
    version = str(metadata.get("lock_version", ""))
    if version.partition(".")[0] != _KNOWN:
        raise FormatError(f"metadata.lock_version is {tables.shown(version)}", expected="4.x (pdm.lock)")
    entries = tables.rows(document, "package", "the lock", MOST_PACKAGES)
    lines = tables.lines_of(data, b"[[package]]")
    lines = lines if len(lines) == len(entries) else [0] * len(entries)
    apart = tables.table(metadata.get("files", {}), "metadata.files")
    packages = tuple(_package(e, f"package[{number}]", apart, lines[number]) for number, e in enumerate(entries))
    stated = tuple(map(canonicalize_name, tables.texts(metadata, "groups", "metadata")))
    groups = dict.fromkeys([*stated, *(group for package in packages for group in package.in_groups)])
    platforms, pythons = [], []
    for target in tables.rows(metadata, "targets", "metadata", MOST_PACKAGES):
        row = tables.table(target, "metadata.targets")
        platforms.append(tables.text(row, "platform", "metadata.targets"))
        pythons.append(tables.text(row, "requires_python", "metadata.targets"))
    return Lock(
        PDM,
        packages,
        requires_python=pythons[0] if len(set(pythons)) == 1 else "",
        platforms=() if "" in platforms else tuple(platforms),
        groups=tuple(groups),
        default_groups=(DEFAULT,),
        has_groups=any(package.in_groups for package in packages) or not packages,
    )


def _package(entry: object, where: str, apart: dict[str, Any], line: int) -> LockedPackage:
    table = tables.table(entry, where)
    name = tables.name(table, where)
    url, path = tables.text(table, "url", where), tables.text(table, "path", where)
    repository = next((key for key in _REPOSITORIES if key in table), "")
    key = f"{tables.text(table, 'name', where)} {tables.text(table, 'version', where)}"
    files = [] if repository or path else _files(table.get("files", apart.get(key, [])), f"{where}.files")
    if url:
        linked = tables.file_at(url, f"{where}.url")
        hashes = next((file.hashes for file in files if file.file_name == linked.file_name), linked.hashes)
        files = [IndexFile(linked.file_name, linked.url, hashes)]
    rows = tables.texts(table, "dependencies", where, MOST_DEPENDENCIES)
    return LockedPackage(
        name,
        tables.version(table, where),
        tuple(files),
        VCS if repository else DIRECTORY if path else None,
        bool(url),
        tables.marker(table, "marker", where),
        origin=(tables.text(table, repository, where) if repository else url or path) or None,
        requires_python=tables.text(table, "requires_python", where),
        dependencies=tuple(tables.dependency_of(text, f"{where}.dependencies") for text in rows),
        in_groups=tuple(map(canonicalize_name, tables.texts(table, "groups", where))),
        extras=tuple(map(canonicalize_name, tables.texts(table, "extras", where))),
        line=line,
    )


def _files(entries: object, where: str) -> list[IndexFile]:
    if not isinstance(entries, list) or len(entries) > MOST_FILES:
        raise FormatError(f"{where} is not a list", expected=f"an array of at most {MOST_FILES:,} tables")
    found = []
    for entry in entries:
        table = tables.table(entry, where)
        hashes = tables.digest(tables.text(table, "hash", where))
        url = tables.text(table, "url", where)
        if url:
            linked = tables.file_at(url, where)
            found.append(IndexFile(linked.file_name, linked.url, hashes or linked.hashes))
        else:
            found.append(tables.named_file(tables.text(table, "file", where), hashes, where))
    return found
