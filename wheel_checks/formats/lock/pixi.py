"""``pixi.lock``: environments, and for each of their platforms the packages of conda and of Python's indexes."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from wheel_checks.errors import FormatError
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.lock import tables
from wheel_checks.formats.lock.model import CONDA, DIRECTORY, PIXI, VCS, CondaPlatform, Lock, LockedPackage
from wheel_checks.formats.lock.tables import MOST_PACKAGES
from wheel_checks.formats.lock.yaml_values import LINE, read_yaml
from wheel_checks.parsing import version_or_none

DEFAULT = "default"
_KNOWN = range(3, 8)
_SUFFIXES = (".conda", ".tar.bz2")
_CONDA_NAME = re.compile(r"[A-Za-z0-9_.+-]{1,200}")
_CONDA_TEXT = re.compile(r"[A-Za-z0-9_.+!-]{0,200}")
_SOURCE = re.compile(r"(?P<name>[^\s\[]{1,200})\[[^\]\s]{0,100}\] @ .+")  # of version 7: name[hash] @ location
_REPOSITORY = re.compile(r"(?:git|hg|svn|bzr)\+")


def read_pixi(data: bytes) -> Lock:
    """The lock file. Raises FormatError naming the field that pixi would not write."""
    document = tables.table(read_yaml(data, "the lock"), "the lock")
    version = document.get("version")
    if version not in [str(known) for known in _KNOWN]:
        raise FormatError(f"version is {tables.shown(version)}", expected=f"{_KNOWN[0]} to {_KNOWN[-1]} (pixi.lock)")
    entries = tables.rows({"packages": document.get("packages") or []}, "packages", "the lock", MOST_PACKAGES)
    packages, numbers = [], dict[str, list[int]]()
    for number, entry in enumerate(entries):
        package, key = _package(tables.table(entry, f"packages[{number}]"), f"packages[{number}]")
        numbers.setdefault(key, []).append(number)
        packages.append(package)
    named = _platforms(document)
    chosen: dict[str, dict[CondaPlatform, tuple[int, ...]]] = {}
    environments = tables.table(document.get("environments", {}), "environments")
    for name, value in environments.items():
        if name == LINE:
            continue
        environment = tables.table(value, "environments")
        platforms = tables.table(environment.get("packages") or {}, "environments.packages")
        known = [named.get(name, CondaPlatform(name, name)) for name in platforms if name != LINE]
        chosen[name] = {platform: _members(platforms, platform, numbers, packages) for platform in known}
    if not chosen:
        raise FormatError("the lock has no environment", expected="a table environments (pixi.lock)")
    return Lock(
        PIXI,
        tuple(packages),
        platforms=tuple(dict.fromkeys(platform.name for found in chosen.values() for platform in found)),
        groups=tuple(chosen),
        default_groups=(DEFAULT,),
        chosen=chosen,
    )


def _platforms(document: dict[str, Any]) -> dict[str, CondaPlatform]:
    """The platforms of version 7, by name, which may have a subdir and virtual packages of their own."""
    found = {}
    for entry in tables.rows({"platforms": document.get("platforms") or []}, "platforms", "the lock", MOST_PACKAGES):
        row = tables.table(entry, "platforms")
        name, virtual = tables.text(row, "name", "platforms"), row.get("virtual-packages") or []
        if not isinstance(virtual, list) or not all(isinstance(text, str) for text in virtual):
            raise FormatError(f"virtual-packages is {tables.shown(virtual)}", expected="a list of strings (pixi.lock)")
        found[name] = CondaPlatform(name, tables.text(row, "subdir", "platforms") or name, tuple(virtual))
    return found


def _members(
    platforms: dict[str, Any], platform: CondaPlatform, numbers: dict[str, list[int]], packages: list[LockedPackage]
) -> tuple[int, ...]:
    """The packages of one environment on one platform, by their places in the list."""
    found = []
    for entry in tables.rows(platforms, platform.name, "environments.packages", MOST_PACKAGES):
        row = tables.table(entry, "environments.packages")
        key = _key(row, "environments.packages")
        places = numbers.get(key)
        if not places:
            raise FormatError(f"environments name {tables.shown(key)}", expected="what is listed under packages")
        here = [place for place in places if f"/{platform.subdir}/" in (packages[place].origin or "")]
        found.append(here[0] if here else places[0])
    return tuple(found)


def _key(row: dict[str, Any], where: str) -> str:
    """Kind and place of an entry, which an environment repeats."""
    kind = next((kind for kind in _KINDS if kind in row), "")
    if not kind:
        named = tables.text(row, "kind", where)
        place = row.get("url") or row.get("path")
        if named not in ("conda", "pypi") or not isinstance(place, str):
            kinds = joined if (joined := ", ".join(str(key) for key in row if key != LINE)[:80]) else "nothing"
            raise FormatError(f"{where} has {kinds}", expected="an entry conda or pypi")
        return f"{named} {place}"
    return f"{kind} {tables.text(row, kind, where)}"


def _package(row: dict[str, Any], where: str) -> tuple[LockedPackage, str]:
    key = _key(row, where)
    kind, _, place = key.partition(" ")
    line = row[LINE]
    return _READERS[kind](row, place, where, line), key


def _conda(row: dict[str, Any], place: str, where: str, line: int) -> LockedPackage:
    """Name, version and build are in the name of the file; a source package has a folder instead."""
    file_name = unquote(place.partition("#")[0].rpartition("/")[2])
    stem = next((file_name.removesuffix(s) for s in _SUFFIXES if file_name.endswith(s)), "")
    parts = stem.rsplit("-", 2)
    named = parts if len(parts) == 3 else [file_name, "", ""]
    name, version, build = (
        tables.text(row, k, where) or v for k, v in zip(("name", "version", "build"), named, strict=True)
    )
    if not _CONDA_NAME.fullmatch(name) or not _CONDA_TEXT.fullmatch(version) or not _CONDA_TEXT.fullmatch(build):
        raise FormatError(f"{where} is {tables.shown(place)}", expected="a package of conda: name-version-build")
    hashes = tables.digests({k: v for k in ("sha256", "md5") if (v := row.get(k))})
    files = (IndexFile(file_name, place, hashes),) if stem else ()
    return LockedPackage(name.lower(), version, files, CONDA, build=build or None, origin=place, line=line)


def _conda_source(row: dict[str, Any], place: str, where: str, line: int) -> LockedPackage:
    """A package that is built from a folder or a repository; nothing of it is on an index."""
    matched = _SOURCE.fullmatch(place)
    if not matched or not _CONDA_NAME.fullmatch(matched["name"]):
        raise FormatError(f"{where} is {tables.shown(place)}", expected="name[hash] @ location (pixi.lock)")
    version, build = tables.text(row, "version", where), tables.text(row, "build", where)
    return LockedPackage(matched["name"].lower(), version, (), CONDA, build=build or None, origin=place, line=line)


def _pypi(row: dict[str, Any], place: str, where: str, line: int) -> LockedPackage:
    name = tables.name(row, where)
    version = tables.text(row, "version", where)
    version = version if version_or_none(version) else ""
    direct = not tables.text(row, "index", where)
    hashes = tables.digests({k: v for k in ("sha256", "md5") if (v := row.get(k))})
    made = LockedPackage(
        name,
        version,
        (),
        origin=place,
        line=line,
        requires_python=tables.text(row, "requires_python", where),
        registry=tables.text(row, "index", where) or None,
    )
    if _REPOSITORY.match(place):
        return replace(made, source=VCS)
    place = place.removeprefix("direct+")
    if "://" not in place:
        is_file = place.endswith((".whl", ".tar.gz", ".zip"))
        source = "" if is_file else DIRECTORY
        files = (tables.named_file(place.rpartition("/")[2], hashes, where),) if is_file else ()
        return replace(made, files=files, source=source)
    linked = tables.file_at(place, where)
    file = IndexFile(linked.file_name, linked.url, hashes or linked.hashes)
    return replace(made, files=(file,), direct=direct)


_READERS = {"conda": _conda, "conda_source": _conda_source, "pypi": _pypi}
_KINDS = tuple(_READERS)
