"""The settings of uv for planning an install: the user's own, and from a tree's only those that change the result.

uv would read the files of a tree itself, and take indexes, the path of its cache, and the Python to start from them. So
it reads none: it gets one file with these settings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wheel_checks.model import NotUnderstood
from wheel_checks.parsing import requirement_or_none
from wheel_checks.sources.file_urls import is_file_url, path_of
from wheel_checks.sources.installers.files import uv_tables
from wheel_checks.sources.installers.options import OTHER, effect_of_setting
from wheel_checks.sources.regular_file import expand_home, real_path
from wheel_checks.sources.trust import Address, Trust, is_inside, with_url

_ADDRESS = re.compile(r"://|^file:|\bgit\+|@\s*[./~]")
_PLACES = ("extra-index-url", "find-links")
_PASSED = ("chosen", "wheels", "managed")  # effects that a file of a tree may have
_OF_AN_INDEX = {"name", "url", "default", "explicit", "format", "authenticate", "publish-url", "cache-control"}


@dataclass(slots=True)
class UvSettings:
    """The settings with which uv runs in a folder."""

    table: dict[str, Any] = field(default_factory=dict)  # the content of a uv.toml
    refused: list[Address] = field(default_factory=list)  # addresses of a tree that would count
    not_understood: list[NotUnderstood] = field(default_factory=list)  # keys whose effect is unknown

    @property
    def builds(self) -> bool:
        """Whether they want packages as source archives."""
        return bool(self._values("no-binary") or self._values("no-binary-package"))

    @property
    def wheels_only(self) -> bool:
        """Whether they exclude all source archives."""
        return bool(self._values("no-build") or self._values("only-binary"))

    @property
    def may_change_managed(self) -> bool:
        """Whether they allow changes of an environment that the system's package manager owns."""
        return bool(self._values("break-system-packages"))

    def _values(self, key: str) -> list[Any]:
        tables = (self.table, self.table.get("pip"))
        return [table[key] for table in tables if isinstance(table, Mapping) and table.get(key)]


def uv_settings(environ: Mapping[str, str], cwd: Path, trust: Trust, *, build: bool = False) -> UvSettings:
    """The settings with which uv runs in ``cwd``, the nearest file first, and may ``build``.

    Raises UsageError for unreadable files.
    """
    found = UvSettings()
    for path, table, tree in uv_tables(environ, cwd):
        found.not_understood += _not_understood(table, path, dropped=("builds",) if build and tree is not None else ())
        own = (
            _with_places(table, path.parent) if tree is None else _OfTree(path, tree, trust, found.refused).take(table)
        )
        found.table = _merged(found.table, own)
    return found


def reaching_settings(environ: Mapping[str, str], cwd: Path) -> dict[str, Any]:
    """The network and cache settings in the user's and the system's files of uv."""
    found: dict[str, Any] = {}
    for _, table, tree in uv_tables(environ, cwd):
        if tree is None:
            found = _merged(found, {key: value for key, value in table.items() if _is(key, "reaching")})
    return found


def _is(key: str, *effects: str) -> bool:
    return effect_of_setting(key) in effects


def _not_understood(
    table: Mapping[str, Any], path: Path, name: str = "", *, dropped: Sequence[str] = ()
) -> Iterator[NotUnderstood]:
    """The keys of a table whose effect is unknown, or that are ``dropped`` though they count here."""
    for key, value in table.items():
        effect, where = effect_of_setting(key), f"{name}{key}"
        if effect == "table" and isinstance(value, Mapping):
            yield from _not_understood(value, path, f"{key}.", dropped=dropped)
        elif key == "index" and isinstance(value, list):
            rows = (row for row in value if isinstance(row, Mapping))
            yield from (NotUnderstood(f"{where}.{one}", str(path)) for row in rows for one in row.keys() - _OF_AN_INDEX)
        elif value in (False, [], "", [":none:"]):
            continue
        elif effect in (OTHER, *dropped) or (effect == "wheels" and value not in (True, [":all:"])):
            yield NotUnderstood(where, str(path))


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """As uv merges its files: lists are joined, tables merged, and of single values the first counts."""
    merged = dict(first)
    for key, value in second.items():
        known = merged.get(key)
        if isinstance(known, list) and isinstance(value, list):
            merged[key] = [*known, *value]
        elif isinstance(known, Mapping) and isinstance(value, Mapping):
            merged[key] = _merged(known, value)
        else:
            merged.setdefault(key, value)
    return merged


def _with_places(table: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The user's table with absolute places: its relative ones start at its own folder."""
    found = dict(table)
    if isinstance(found.get("pip"), Mapping):
        found["pip"] = _with_places(found["pip"], folder)
    for key in ("index-url", *_PLACES):
        if isinstance(found.get(key), str):
            found[key] = _absolute(found[key], folder)
        elif isinstance(found.get(key), list):
            found[key] = [_absolute(place, folder) if isinstance(place, str) else place for place in found[key]]
    if isinstance(found.get("index"), list):
        rows = found["index"]
        found["index"] = [
            {**row, "url": _absolute(row["url"], folder)}
            if isinstance(row, dict) and isinstance(row.get("url"), str)
            else row
            for row in rows
        ]
    return found


def _absolute(place: str, folder: Path) -> str:
    is_url = "://" in place or is_file_url(place)
    return place if is_url else (folder / expand_home(place)).absolute().as_uri()


@dataclass(frozen=True, slots=True)
class _OfTree:
    path: Path
    tree: Path
    trust: Trust
    refused: list[Address]

    def take(self, table: Mapping[str, Any]) -> dict[str, Any]:
        """The settings of a tree's table that are passed to uv."""
        found = {key: self._checked(value, key) for key, value in table.items() if _is(key, *_PASSED)}
        found |= {key: list(self._allowed(key, table[key])) for key in _PLACES if isinstance(table.get(key), list)}
        if isinstance(table.get("index-url"), str):
            for url in self._allowed("index-url", [table["index-url"]]):
                found["index-url"] = url
        rows = table.get("index")
        counted = (
            [row for row in rows if isinstance(row, dict) and not row.get("explicit")] if isinstance(rows, list) else []
        )
        for row in counted:
            for url in self._allowed("index", [row.get("url")]):
                kept = {key: row[key] for key in ("default", "format") if key in row}
                found.setdefault("index", []).append({"url": url, **kept})
        if isinstance(table.get("pip"), Mapping):
            found["pip"] = self.take(table["pip"])
        if isinstance(table.get("torch-backend"), str):
            self.refused.append(
                Address(f"torch-backend {table['torch-backend'][:80]}", str(self.path), "choice of index")
            )
        return found

    def _allowed(self, key: str, places: Sequence[Any]) -> Iterator[str]:
        kind = "find-links page" if key == "find-links" else "index"
        for place in places:
            text = str(place)
            url = self.trust.allowed(text)
            if url is None and ("://" not in text or is_file_url(text)):
                local = path_of(text) if is_file_url(text) else self.path.parent / text
                url = real_path(local).as_uri() if is_inside(local, self.tree) else None
            if url is None:
                self.refused.append(Address(text, str(self.path), kind))
            else:
                yield url

    def _checked(self, value: Any, key: str) -> Any:
        """A value whose requirements name no address that may not be contacted."""
        if isinstance(value, Mapping):
            return {name: self._checked(item, key) for name, item in value.items()}
        if isinstance(value, list):
            return [self._checked(item, key) for item in value]
        if not isinstance(value, str) or not _ADDRESS.search(value):
            return value
        requirement = requirement_or_none(value)
        url = self.trust.allowed(requirement.url or "") if requirement else None
        if requirement is None or url is None:
            self.refused.append(Address(value, f"{self.path}, {key}", "requirement"))
            return value
        return with_url(requirement, url)
