"""A source archive (sdist), read without unpacking or building it: its requirements, and those of its build."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.members import read_members
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.formats.sdist.static_metadata import (
    LARGEST_PYPROJECT,
    PKG_INFO,
    PYPROJECT,
    BuildSystem,
    StaticMetadata,
    read_build_system,
    read_static_metadata,
)
from wheel_checks.formats.sdist.tar_members import TarMember, gunzip, read_tar
from wheel_checks.formats.wheel.core_metadata import MAX_SIZE
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirements_in
from wheel_checks.sources.byte_source import ByteSource

READABLE = (".tar.gz", ".zip")
"""The archives that uv takes; it refuses others, which PEP 625 ended."""

MOST_BYTES = 128 << 20
"""Bytes of an archive that are read for its metadata, which some build backends write last (scikit-build-core)."""

ENOUGH_BYTES = 8 << 20
"""Bytes after which reading ends when the requirements are known, and only build requirements may be missing."""

_SETUP = "setup.py"
_OF_MACOS = "._"  # prefix of resource forks, which macOS tar writes next to files
_LIMITS = {PKG_INFO: MAX_SIZE, PYPROJECT: LARGEST_PYPROJECT, _SETUP: 1 << 20}
_FIRST, _NEXT = 256 << 10, 2 << 20  # bytes that are read at once

_KINDS = {  # by the suffix or the name of a member
    ".cu": "nvcc of a CUDA toolkit (CUDA sources)",
    ".hip": "hipcc of ROCm (HIP sources)",
    ".cpp": "a C++ compiler",
    ".cc": "a C++ compiler",
    ".cxx": "a C++ compiler",
    ".c": "a C compiler",
    ".rs": "Rust (cargo)",
    ".f90": "a Fortran compiler",
    ".pyx": "a C compiler (Cython sources)",
    "CMakeLists.txt": "CMake",
}
_NAMES_CUDA = re.compile(r"\b(?:CUDAExtension|CUDA_HOME|CUDA_PATH|nvcc)\b")
_IMPORTS = re.compile(r"^[ \t]*(?:import|from)[ \t]+(torch|numpy|jax|tensorflow)\b", re.MULTILINE)

_PACKERS = frozenset(
    {"setuptools.build_meta", "hatchling.build", "flit_core.buildapi", "poetry.core.masonry.api", "pdm.backend", ""}
)
_OF_PACKERS = frozenset(
    {
        *("setuptools", "wheel", "setuptools-scm", "hatchling", "hatch-vcs", "hatch-fancy-pypi-readme", "flit-core"),
        *("poetry-core", "poetry-dynamic-versioning", "pdm-backend", "pip", "packaging", "toml", "tomli"),
    }
)
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_DOES_MORE = re.compile(
    r"ext_modules|Extension\b|cffi_modules|rust_extensions|cmdclass|subprocess\.|from subprocess|os\.system|urlopen"
    r"|cythonize|CMake|import (?:urllib|requests)|cpp_extension|popen",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class SourceArchive:
    """A source archive of a release. ``url`` has no credentials; ``size`` is in bytes, None when no index states it.

    ``metadata_of`` names the wheel for another machine whose METADATA replaces the archive's, as in uv's resolutions;
    "" when the archive's own is used. ``own_computed`` says why a build may give other metadata than the archive's own.
    ``sources`` are the kinds of source code found, and ``imported`` the packages that its setup.py imports without
    listing them as build requirements. ``is_pure`` is True if all of it was read, and a build of it compiles nothing
    (see :func:`_builds_nothing`).
    """

    name: str
    version: str
    file_name: str
    url: str = ""
    size: int | None = None
    metadata: StaticMetadata | Unavailable = field(default_factory=lambda: Unavailable("it was not read"))
    build: BuildSystem | Unavailable = field(default_factory=lambda: Unavailable("it was not read"))
    metadata_of: str = ""
    own_computed: str = ""
    sources: tuple[str, ...] = ()
    imported: tuple[str, ...] = ()
    is_pure: bool = False

    @property
    def label(self) -> str:
        """Such as "deepspeed 0.18.2"."""
        return f"{self.name} {self.version}"

    @property
    def requirements(self) -> tuple[Requirement, ...]:
        """The requirements that parse; none when its metadata could not be read."""
        return () if isinstance(self.metadata, Unavailable) else tuple(requirements_in(self.metadata.requirements))

    @property
    def computed(self) -> str:
        """Why its requirements are known only from a build; "" when its metadata is static."""
        if isinstance(self.metadata, Unavailable):
            return self.metadata.reason
        return "" if self.metadata_of else self.metadata.computed

    @property
    def needs(self) -> tuple[str, ...]:
        """The needs of a build, as phrases: its requirements, compilers, packages that must be installed before."""
        found = []
        if isinstance(self.build, BuildSystem):
            found += [", ".join(self.build.requires)] * bool(self.build.requires)
            if self.build.in_tree:
                found.append(f"its own build backend ({self.build.backend})")
        found += self.sources
        found += [
            f"{name} installed beforehand (its setup.py imports it: --no-build-isolation)" for name in self.imported
        ]
        return tuple(found)

    def __str__(self) -> str:
        return f"{self.label} would be built from {self.file_name}"


def read_source_archive(
    source: ByteSource, name: str, version: str, file_name: str, *, whole: bool = False
) -> SourceArchive:
    """The facts of the archive, read from its start as far as needed (``MOST_BYTES``), or all of it.

    Missing facts are Unavailable. Raises SourceError when it cannot be read, FormatError if it is not an archive.
    """
    members: dict[str, bytes] = {}
    kinds: dict[str, None] = {}
    read = (
        _zip_members(source)
        if file_name.endswith(".zip")
        else _tar_members(source, lambda: _Known.NOTHING if whole else _is_known(name, version, members))
    )
    first = ""
    for member in read:
        top, _, rest = member.name.removeprefix("./").partition("/")
        first = first or (top if rest and not top.startswith(_OF_MACOS) else "")
        is_wanted = top == first and rest in _LIMITS and member.content is not None
        if is_wanted and members.setdefault(rest, member.content or b"") != member.content:
            raise FormatError(f"it has two {rest} files with different contents")
        tail = rest.rpartition("/")[2]
        kind = _KINDS.get(tail) or _KINDS.get(f".{tail.rpartition('.')[2]}" if "." in tail else "")
        if kind and not _is_aside(rest):
            kinds[kind] = None
    metadata: StaticMetadata | Unavailable
    build: BuildSystem | Unavailable
    pyproject = members.get(PYPROJECT)
    try:
        metadata = read_static_metadata(name, version, members.get(PKG_INFO), pyproject)
    except FormatError as error:
        metadata = Unavailable(f"the requirements of {file_name} are unknown: {error}")
    try:
        build = read_build_system(pyproject)
    except FormatError as error:
        build = Unavailable(f"its build system is unknown: {error}")
    setup = members.get(_SETUP, b"").decode("utf-8", "replace")
    if _NAMES_CUDA.search(setup) and _KINDS[".cu"] not in kinds:
        kinds["a CUDA toolkit (its setup.py looks for one)"] = None
    return SourceArchive(
        name,
        version,
        file_name,
        metadata=metadata,
        build=build,
        sources=tuple(sorted(kinds)),
        imported=tuple(_imported(setup, build)),
        is_pure=whole and not kinds and _builds_nothing(setup, build),
    )


def _builds_nothing(setup: str, build: BuildSystem | Unavailable) -> bool:
    """Whether a known build backend only packs existing files: no extension, no command, no program that it starts."""
    if isinstance(build, Unavailable) or build.in_tree or _DOES_MORE.search(setup):
        return False
    needed = {match[0].lower().replace("_", "-") for text in build.requires if (match := _NAME.match(text))}
    return build.backend.partition(":")[0] in _PACKERS and needed <= _OF_PACKERS


def _imported(setup: str, build: BuildSystem | Unavailable) -> Iterator[str]:
    requires = build.requires if isinstance(build, BuildSystem) else ()
    stated = {canonicalize_name(requirement.name) for requirement in requirements_in(requires)}
    yield from sorted(set(_IMPORTS.findall(setup)) - stated)


def _is_aside(path: str) -> bool:
    """Whether a file is of tests, examples or documentation, which no build compiles."""
    return any(part in {"test", "tests", "docs", "doc", "examples", "benchmarks"} for part in path.split("/")[:-1])


class _Known(Enum):
    """Which of the searched facts have been found."""

    NOTHING = 0
    REQUIREMENTS = 1
    EVERYTHING = 2


def _is_known(name: str, version: str, members: Mapping[str, bytes]) -> _Known:
    if PKG_INFO in members:
        return _Known.EVERYTHING if PYPROJECT in members else _Known.REQUIREMENTS
    try:
        read_static_metadata(name, version, None, members.get(PYPROJECT))
    except FormatError:
        return _Known.NOTHING
    return _Known.REQUIREMENTS


def _tar_members(source: ByteSource, known: Callable[[], _Known]) -> Iterator[TarMember]:
    def limit_of(name: str) -> int:
        return _LIMITS.get(name.removeprefix("./").partition("/")[2], 0)

    yield from read_tar(gunzip(_chunks(source, known)), limit_of)


def _chunks(source: ByteSource, known: Callable[[], _Known]) -> Iterator[bytes]:
    """The archive from its start, until enough is ``known``; kept in the cache piece by piece."""
    size = source.read_tail(1)[0]
    position = 0
    while position < min(size, MOST_BYTES):
        found = known()
        if found is _Known.EVERYTHING or (found is _Known.REQUIREMENTS and position >= ENOUGH_BYTES):
            return
        length = min(_NEXT if position else _FIRST, size - position)
        yield source.read(position, length)
        position += length


def _zip_members(source: ByteSource) -> Iterator[TarMember]:
    archive = read_archive(source)
    wanted = {
        member.name: _LIMITS[rest]
        for member in archive.members
        if (rest := member.name.partition("/")[2]) in _LIMITS and not member.is_directory
    }
    contents = read_members(source, archive, wanted).contents
    for member in archive.members:
        content = contents.get(member.name)
        yield TarMember(member.name, member.size, content if isinstance(content, bytes) else None)
