"""Is a uv.lock up to date, and would uv build a project to find out? Read without uv, which builds what is dynamic."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, UsageError, WheelproofError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.sources.requirement_files import LARGEST, read_requirements_file

_LOCAL = ("editable", "directory", "virtual")  # kinds of sources: folders of the tree
_BUILT = ("dependencies", "optional-dependencies", "requires-python", "name")


class Dynamic(IntEnum):
    """What uv would have to build a project for: nothing, its version, or what it requires."""

    NOTHING = 0
    VERSION = 1
    REQUIREMENTS = 2


def read_toml(path: Path) -> dict[str, Any]:
    """The document at ``path``. Raises UsageError when it cannot be read."""
    try:
        return parse_toml(read_requirements_file(path), str(path), LARGEST)
    except FormatError as error:
        raise UsageError(error.what) from error


def table(document: Mapping[str, Any], *keys: str) -> Mapping[str, Any]:
    """The table below these keys; empty where it is missing."""
    value: Any = document
    for key in keys:
        value = value.get(key) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def dynamic_of(folder: Path) -> Dynamic:
    """What a build of the project in a folder would compute."""
    try:
        document = read_toml(folder / "pyproject.toml")
    except WheelproofError:
        return Dynamic.REQUIREMENTS  # a setup.py alone
    project = table(document, "project")
    if not isinstance(project.get("name"), str):
        is_empty = "project" not in document and "build-system" not in document
        return Dynamic.NOTHING if is_empty else Dynamic.REQUIREMENTS  # the root of a workspace, maybe
    computed = project.get("dynamic")
    names = set(computed) if isinstance(computed, list) else set()
    if names & set(_BUILT):
        return Dynamic.REQUIREMENTS
    return Dynamic.VERSION if "version" in names or "version" not in project else Dynamic.NOTHING


def local_projects(folder: Path) -> dict[Path, Mapping[str, Any]]:
    """The folders of the projects that a lock and a pyproject.toml name, each with its entry in the lock."""
    found: dict[Path, Mapping[str, Any]] = {folder: {}}
    lock = folder / "uv.lock"
    packages = read_toml(lock).get("package", []) if lock.is_file() else []
    for package in packages if isinstance(packages, list) else []:
        source = package.get("source") if isinstance(package, Mapping) else None
        place = next((source[key] for key in _LOCAL if key in source), None) if isinstance(source, Mapping) else None
        if isinstance(place, str):
            found[(folder / place).resolve()] = package
    document = read_toml(folder / "pyproject.toml")
    for value in table(document, "tool", "uv", "sources").values():
        for row in value if isinstance(value, list) else [value]:
            path = row.get("path") if isinstance(row, Mapping) else None
            if isinstance(path, str) and (folder / path).is_dir():
                found.setdefault((folder / path).resolve(), {})
    return found


def is_up_to_date(folder: Path, entry: Mapping[str, Any]) -> bool:
    """Whether what a lock says a project requires is what its pyproject.toml says, so that uv keeps the lock."""
    document = read_toml(folder / "pyproject.toml")
    metadata = table(entry, "metadata")
    try:
        stated = Counter(_of_lock(metadata.get("requires-dist")))
        groups = {key: Counter(_of_lock(rows)) for key, rows in table(metadata, "requires-dev").items()}
        wanted = Counter(_of_project(document))
        wanted_groups = {
            str(canonicalize_name(key)): Counter(map(_key, _texts(rows)))
            for key, rows in table(document, "dependency-groups").items()
        }
    except (InvalidRequirement, InvalidMarker, InvalidSpecifier, KeyError, TypeError):
        return False
    return bool(entry) and stated == wanted and groups == wanted_groups


_Key = tuple[str, str, tuple[str, ...], str]


def _of_project(document: Mapping[str, Any]) -> Iterator[_Key]:
    yield from map(_key, _texts(table(document, "project").get("dependencies", [])))
    for extra, texts in table(document, "project", "optional-dependencies").items():
        for text in _texts(texts):
            requirement = Requirement(text)
            condition = f"extra == '{canonicalize_name(extra)}'"
            marker = f"({requirement.marker}) and {condition}" if requirement.marker else condition
            requirement.marker = Marker(marker)
            yield _key(str(requirement))


def _texts(rows: Any) -> list[str]:
    """The requirements in a list. Raises TypeError for anything else, such as a group that includes another."""
    if not isinstance(rows, list) or not all(isinstance(row, str) for row in rows):
        raise TypeError(rows)
    return rows


def _key(text: str) -> _Key:
    requirement = Requirement(text)
    if requirement.url:
        raise InvalidRequirement(text)
    extras = tuple(sorted(canonicalize_name(extra) for extra in requirement.extras))
    marker = str(requirement.marker) if requirement.marker else ""
    return str(canonicalize_name(requirement.name)), str(requirement.specifier), extras, marker


def _of_lock(rows: Any) -> Iterator[_Key]:
    for row in rows or []:
        extras = tuple(sorted(canonicalize_name(extra) for extra in row.get("extras", [])))
        marker = str(Marker(row["marker"])) if row.get("marker") else ""
        yield str(canonicalize_name(row["name"])), str(SpecifierSet(row.get("specifier", ""))), extras, marker
