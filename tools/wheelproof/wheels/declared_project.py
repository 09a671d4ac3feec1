"""The requirements of a pyproject.toml: [project], with the sources of [tool.uv.sources]."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import InvalidName, canonicalize_name
from packaging.version import InvalidVersion, Version

from wheel_checks.errors import FormatError, UsageError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.formats.toml_spans import Lines
from wheel_checks.parsing import requirement_or_none
from wheel_checks.phrases import summarised
from wheel_checks.sources.requirement_files import LARGEST
from wheel_checks.sources.trust import REPOSITORY, Address
from wheel_checks.targets.extras_and_groups import ExtrasAndGroups
from wheelproof.wheels.declared_model import Line, UvSource

_NAMED = 20  # extras or groups in one sentence


@dataclass(slots=True)
class ProjectRequirements:
    """``name`` is "" if the file has none. ``is_open``: the requirements are known only after a build.

    ``lines`` are requirements, each with its local path, "" if none. ``files`` are setuptools' instead.
    """

    name: str = ""
    version: str = ""
    is_open: bool = False
    files: tuple[str, ...] = ()
    lines: list[tuple[Line, str]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)


def read_project(path: Path, text: str, chosen: ExtrasAndGroups, *, strict: bool = True) -> ProjectRequirements:
    """The requirements of the project at ``path``, from its text, with its extras and groups.

    Where that is ``strict``, UsageError is raised for an extra or a group that it does not have: pip only warns.
    """
    found = ProjectRequirements()
    try:
        document = parse_toml(text, path.name, LARGEST)
    except FormatError as error:
        found.faults.append(error.what)
        return found
    project = document.get("project")
    if not isinstance(project, dict) or not isinstance(project.get("name"), str):
        found.is_open = True
        return found
    try:
        found.name = str(canonicalize_name(project["name"], validate=True))
        found.version = (
            str(Version(version)) if isinstance(version := project.get("version", ""), str) and version else ""
        )
    except (InvalidName, InvalidVersion):
        found.faults.append(f"project in {path.name} has no valid name and version")
        return found
    dynamic = project.get("dynamic")
    extras = _extras(path, project, chosen, strict=strict)
    left_open = {str(key) for key in dynamic} if isinstance(dynamic, list) else set()
    if left_open & {"dependencies", *(["optional-dependencies"] if extras else [])}:
        found.files = _dynamic_files(document, path.parent) if not extras and not chosen.groups else ()
        found.is_open = not found.files
        return found
    rows = (*_texts(project, found.name, extras), *_of_groups(path, document, chosen.groups))
    _take(found, path, text, rows, _uv_sources(document, path, extras, chosen.groups))
    return found


def _dynamic_files(document: Mapping[str, Any], folder: Path) -> tuple[str, ...]:
    """The files from which setuptools reads the dependencies; () if a build may do more.

    A setup.py may compute others.
    """
    value: Any = document
    for key in ("tool", "setuptools", "dynamic", "dependencies"):
        value = value.get(key) if isinstance(value, Mapping) else None
    build = document.get("build-system")
    backend = build.get("build-backend", "") if isinstance(build, Mapping) else ""
    named = value.get("file") if isinstance(value, Mapping) else None
    names = [named] if isinstance(named, str) else named
    is_plain = backend == "setuptools.build_meta" and not (folder / "setup.py").exists()
    if not is_plain or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        return ()
    return tuple(names)


def read_groups(path: Path, text: str, groups: Sequence[str]) -> ProjectRequirements:
    """The requirements of dependency groups alone. Raises UsageError for a group that the file does not have."""
    found = ProjectRequirements()
    try:
        document = parse_toml(text, path.name, LARGEST)
    except FormatError as error:
        found.faults.append(error.what)
        return found
    _take(found, path, text, _of_groups(path, document, groups), _uv_sources(document, path, (), groups))
    return found


def _take(
    found: ProjectRequirements,
    path: Path,
    text: str,
    texts: Iterable[tuple[str, Any]],
    sources: Mapping[str, list[tuple[UvSource, str]]],
) -> None:
    """Add the requirements in ``texts``, each with its key, to ``found``."""
    places = Lines(text)
    for where, text_of in texts:
        try:
            requirement = Requirement(text_of)
        except (InvalidRequirement, TypeError):
            found.faults.append(f"{path.name}, {where} has no requirement: {str(text_of)[:200]!r}")
            continue
        rows = sources.get(str(canonicalize_name(requirement.name)), [])
        local = next((place for _, place in rows if place), "")
        of_uv = tuple(source for source, place in rows if not place)
        line = Line(requirement, f"{path.name}, {where}", sources=of_uv)
        found.lines.append((replace(line, file=os.path.normpath(path), number=places.of(where, text_of)), local))


def _texts(project: Mapping[str, Any], name: str, extras: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The requirements of a project and of its extras, each with its key, following references to its extras."""
    optional = project.get("optional-dependencies")
    groups = optional if isinstance(optional, dict) else {}
    front: list[tuple[str, Any]] = [("project.dependencies", project.get("dependencies", []))]
    taken, wanted = set[str](), list(extras)
    while front or wanted:
        if not front:
            extra = canonicalize_name(wanted.pop())
            rows = [(key, texts) for key, texts in groups.items() if canonicalize_name(key) == extra]
            front = [] if extra in taken else [(f"project.optional-dependencies.{key}", texts) for key, texts in rows]
            taken.add(extra)
            continue
        where, texts = front.pop()
        for text in texts if isinstance(texts, list) else [texts]:
            itself = isinstance(text, str) and _itself(text, name)
            if itself:
                wanted += itself
            else:
                yield where, text


def _extras(path: Path, project: Mapping[str, Any], chosen: ExtrasAndGroups, *, strict: bool) -> tuple[str, ...]:
    """The extras that count. Raises UsageError for an unknown extra."""
    optional = project.get("optional-dependencies")
    known = {str(canonicalize_name(key)) for key in optional} if isinstance(optional, dict) else set()
    if strict and "optional-dependencies" not in (project.get("dynamic") or ()):
        _require_known(path, "extra", chosen.extras, known)
    return tuple(sorted(known)) if chosen.all_extras else chosen.extras


def _require_known(path: Path, kind: str, names: Sequence[str], known: Collection[str]) -> None:
    if unknown := [name for name in names if canonicalize_name(name) not in known]:
        listed = summarised(sorted(known), _NAMED) or "none"
        raise UsageError(f"{path.name} has no {kind} {unknown[0][:80]!r}", expected=f"one of these: {listed}")


def _of_groups(path: Path, document: Mapping[str, Any], names: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """The requirements of dependency groups (PEP 735), each with its key. Raises UsageError for an unknown group."""
    table = document.get("dependency-groups")
    groups = (
        {str(canonicalize_name(key)): (key, rows) for key, rows in table.items()} if isinstance(table, dict) else {}
    )
    _require_known(path, "group", names, groups)
    front, taken = [str(canonicalize_name(name)) for name in names], set[str]()
    while front:
        name = front.pop(0)
        if name in taken or name not in groups:
            continue
        taken.add(name)
        key, rows = groups[name]
        for row in rows if isinstance(rows, list) else [rows]:
            if isinstance(row, dict) and isinstance(row.get("include-group"), str):
                front.append(str(canonicalize_name(row["include-group"])))
            else:
                yield f"dependency-groups.{key}", row


def _itself(text: str, name: str) -> list[str]:
    """The extras that a requirement on the project itself names; [] for one on another project."""
    requirement = requirement_or_none(text)
    return sorted(requirement.extras) if requirement and canonicalize_name(requirement.name) == name else []


def _uv_sources(
    document: Mapping[str, Any], path: Path, extras: Sequence[str], groups: Sequence[str]
) -> dict[str, list[tuple[UvSource, str]]]:
    """The sources of each package that count with these extras and groups. Each with its local path, "" if none."""
    tool = document.get("tool")
    uv = tool.get("uv") if isinstance(tool, dict) else None
    tables = uv.get("sources") if isinstance(uv, dict) else None
    if not isinstance(uv, dict) or not isinstance(tables, dict):
        return {}
    listed = uv.get("index")
    named = [row for row in listed if isinstance(row, dict)] if isinstance(listed, list) else []
    indexes = {str(row.get("name")): row.get("url") for row in named}
    found: dict[str, list[tuple[UvSource, str]]] = {}
    for name, value in tables.items():
        rows = value if isinstance(value, list) else [value]
        entries = [row for row in rows if isinstance(row, dict) and _is_chosen(row, extras, groups)]
        entries.sort(key=lambda row: not {"extra", "group"} & row.keys())
        found[str(canonicalize_name(name))] = [source for row in entries for source in _uv_source(row, indexes, path)]
    return found


def _is_chosen(row: Mapping[str, Any], extras: Sequence[str], groups: Sequence[str]) -> bool:
    """Whether the extra or the group of a source was chosen; True for a source of neither."""
    return all(
        key not in row or canonicalize_name(str(row[key])) in set(map(canonicalize_name, names))
        for key, names in (("extra", extras), ("group", groups))
    )


def _uv_source(row: Mapping[str, Any], indexes: Mapping[str, Any], path: Path) -> Iterator[tuple[UvSource, str]]:
    try:
        marker = Marker(row["marker"]) if isinstance(row.get("marker"), str) else None
    except InvalidMarker:
        marker = None  # it counts everywhere: nothing is taken from elsewhere by mistake
    if isinstance(row.get("index"), str):
        where = f'{path.name}, index "{row["index"][:80]}"'
        yield UvSource(Address(str(indexes.get(row["index"], row["index"])), where), marker), ""
    elif isinstance(row.get("path"), str):
        yield UvSource(Address(row["path"], f"{path.name}, tool.uv.sources", "folder"), marker), row["path"]
    elif isinstance(row.get("url"), str):
        yield UvSource(Address(row["url"], f"{path.name}, tool.uv.sources", "file"), marker), ""
    else:
        value = row.get("git", "the workspace")
        yield UvSource(Address(str(value), f"{path.name}, tool.uv.sources", REPOSITORY), marker), ""
