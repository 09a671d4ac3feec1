"""The requirements of a source archive, read without building it.

As uv reads it (crates/uv-distribution, ``StaticMetadata``): the ``[project]`` table of pyproject.toml when it declares
none of the fields dynamic (PEP 621), else PKG-INFO of version 2.2 or later when it declares none (PEP 643). Other
values were true on the machine that made the archive; every build computes them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.formats.documents import parse_toml
from wheel_checks.formats.wheel.core_metadata import CoreMetadata, parse_core_metadata
from wheel_checks.parsing import version_or_none

PKG_INFO, PYPROJECT = "PKG-INFO", "pyproject.toml"
LARGEST_PYPROJECT = 1 << 20  # bytes

_NEEDED = ("Requires-Dist", "Requires-Python", "Provides-Extra")
_DYNAMIC_PROJECT = ("dependencies", "optional-dependencies", "requires-python")
_MOST_BUILD_REQUIREMENTS = 200
_LONGEST = 500  # characters of a requirement or of a backend's name
_STATIC_SINCE = (2, 2)
DEFAULT_BACKEND = "setuptools.build_meta:__legacy__"
"""The backend of an archive that names none (PEP 517)."""


@dataclass(frozen=True, slots=True)
class StaticMetadata:
    """The metadata of a source archive.

    ``origin`` is the file it was read from. ``computed`` says why a build may give other requirements ("PKG-INFO says
    `Dynamic: Requires-Dist`"), "" when they are static. ``requirements`` are texts, PEP 508's or not: the installer
    handles texts that do not parse.
    """

    name: str
    version: str
    origin: str
    requirements: tuple[str, ...] = ()
    requires_python: str = ""
    extras: tuple[str, ...] = ()
    computed: str = ""

    @property
    def text(self) -> str:
        """The metadata as the METADATA of a wheel."""
        rows = ["Metadata-Version: 2.1", f"Name: {self.name}", f"Version: {self.version}"]
        rows += [f"Requires-Python: {self.requires_python}"] if self.requires_python else []
        rows += [f"Provides-Extra: {extra}" for extra in self.extras]
        rows += [f"Requires-Dist: {requirement}" for requirement in self.requirements]
        return "".join(f"{' '.join(row.split())}\n" for row in rows)


@dataclass(frozen=True, slots=True)
class BuildSystem:
    """The build system of the archive (PEP 518, PEP 517). ``in_tree``: the backend is code of the archive."""

    requires: tuple[str, ...] = ("setuptools",)
    backend: str = DEFAULT_BACKEND
    in_tree: bool = False


def read_static_metadata(project: str, version: str, pkg_info: bytes | None, pyproject: bytes | None) -> StaticMetadata:
    """The metadata of release ``version`` of ``project``, from its two files, each None if missing.

    Raises FormatError when neither states the requirements, or when they are of another release.
    """
    table = _toml(pyproject)
    found = _of_project(table.get("project"), table, version) if pyproject is not None else None
    if found is not None and canonicalize_name(found.name) == canonicalize_name(project):
        return found
    if pkg_info is None:
        raise FormatError("it has no PKG-INFO, and no static [project] table in a pyproject.toml")
    metadata = parse_core_metadata(pkg_info)
    if canonicalize_name(metadata.name) != canonicalize_name(project):
        raise FormatError(f"its PKG-INFO is of {metadata.name[:100]!r}", expected=project)
    if metadata.version and _differs(metadata.version, version):
        raise FormatError(f"its PKG-INFO is of version {metadata.version[:100]!r}", expected=version)
    return StaticMetadata(
        project,
        version,
        PKG_INFO,
        (*map(str, metadata.requirements), *(text for text, _ in metadata.bad_requirements)),
        metadata.requires_python,
        metadata.provides_extra,
        _why_computed(metadata),
    )


def read_build_system(pyproject: bytes | None) -> BuildSystem:
    """The ``[build-system]`` table, or the default of installers. Raises FormatError when it is malformed."""
    table = _toml(pyproject).get("build-system")
    if not isinstance(table, Mapping):
        return BuildSystem()
    requires = table.get("requires", [])
    if not isinstance(requires, list) or len(requires) > _MOST_BUILD_REQUIREMENTS:
        raise FormatError("build-system.requires is not a list of requirements", expected="as PEP 518 says")
    backend, path = table.get("build-backend"), table.get("backend-path")
    return BuildSystem(
        tuple(text[:_LONGEST] for text in requires if isinstance(text, str)),
        backend[:_LONGEST] if isinstance(backend, str) else DEFAULT_BACKEND,
        bool(path),
    )


def _toml(data: bytes | None) -> dict[str, Any]:
    return {} if data is None else parse_toml(data, PYPROJECT, LARGEST_PYPROJECT)


def _why_computed(metadata: CoreMetadata) -> str:
    stated = re.fullmatch(r"(\d{1,4})\.(\d{1,4})", metadata.metadata_version)
    if stated is None or (int(stated[1]), int(stated[2])) < _STATIC_SINCE:
        return f"{PKG_INFO} has Metadata-Version {metadata.metadata_version[:20] or 'none'}: a build computes them"
    names = {name.lower() for name in metadata.dynamic}
    dynamic = [field for field in _NEEDED if field.lower() in names]
    return f"{PKG_INFO} says `Dynamic: {', '.join(dynamic)}`" if dynamic else ""


def _of_project(project: object, table: Mapping[str, Any], version: str) -> StaticMetadata | None:
    """The metadata of a ``[project]`` table; None when a build computes some of it."""
    if not isinstance(project, Mapping) or not isinstance(project.get("name"), str):
        return None
    dynamic = project.get("dynamic", [])
    if not isinstance(dynamic, list) or any(name in dynamic for name in _DYNAMIC_PROJECT):
        return None
    tool = table.get("tool")
    if "dependencies" not in project and isinstance(tool, Mapping) and "poetry" in tool:
        return None  # poetry's own table is not static metadata
    stated = project.get("version")
    if isinstance(stated, str) and stated.strip() != version and _differs(stated, version):
        return None
    extras = project.get("optional-dependencies", {})
    try:
        requirements = tuple(_requirements(project.get("dependencies", []), extras))
    except InvalidRequirement:
        return None
    python = project.get("requires-python", "")
    return StaticMetadata(
        project["name"],
        version,
        PYPROJECT,
        requirements,
        python if isinstance(python, str) else "",
        tuple(extras) if isinstance(extras, Mapping) else (),
    )


def _differs(stated: str, version: str) -> bool:
    one, other = version_or_none(version), version_or_none(stated)
    return one is None or other is None or (one != other and one.public != str(other))


def _requirements(dependencies: object, extras: object) -> Iterator[str]:
    for text in dependencies if isinstance(dependencies, list) else ():
        yield str(Requirement(str(text)[:8_192]))
    for extra, texts in extras.items() if isinstance(extras, Mapping) else ():
        for text in texts if isinstance(texts, list) else ():
            requirement = Requirement(str(text)[:8_192])
            condition = f"extra == '{canonicalize_name(str(extra))}'"
            marker = f"({requirement.marker}) and {condition}" if requirement.marker else condition
            requirement.marker = None
            yield f"{requirement} ; {marker}"
