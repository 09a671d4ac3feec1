"""The requirements in files of a tree: lines, projects, and their indexes."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import WheelproofError
from wheel_checks.model import NotUnderstood
from wheel_checks.sources.trust import Address


@dataclass(frozen=True, slots=True)
class UvSource:
    """One table of [tool.uv.sources]: the source of a package on targets that match ``marker``.

    The address of kind "index" is an index, of kind "file" a wheel.
    """

    address: Address
    marker: Marker | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A requirement and its place ("requirements.txt:3"). Its URL, if any, is as the tree has it.

    ``file`` is the path as the user named it, ``number`` the line in it, 0 when that is unknown.
    """

    requirement: Requirement
    where: str
    constraint: bool = False
    hashes: tuple[str, ...] = ()
    sources: tuple[UvSource, ...] = ()
    file: str = ""
    number: int = 0

    @property
    def name(self) -> str:
        """The normalised name of the package."""
        return str(canonicalize_name(self.requirement.name))


class TypedKind(StrEnum):
    """Arguments of an installer other than requirements."""

    FILE = "-r"
    CONSTRAINTS = "-c"
    GROUP = "--group"
    PROJECT = "."  # a folder, editable or not, or a wheel


@dataclass(frozen=True, slots=True)
class Typed:
    """One such name: ``requirements.txt``, ``dev`` or ``sub/pyproject.toml:dev``, ``./lib[extra]``."""

    kind: TypedKind
    text: str


@dataclass(frozen=True, slots=True)
class Project:
    """A project of the tree that is requested: an installer would build it. Its requirements are lines."""

    name: str
    version: str


@dataclass(slots=True)
class Declared:
    """The requirements of files.

    ``index``, ``extra`` and ``find_links`` are as written, except that local folders are file URLs. ``not_built`` maps
    packages required as source archives to the place of that option; ``wheel_options`` are --only-binary and
    --prefer-binary, with their values. ``open_ends`` leave the whole answer open: requirements known only after a
    download or build. ``faults`` are errors that an installer would report.
    """

    lines: list[Line] = field(default_factory=list)
    projects: list[Project] = field(default_factory=list)
    index: Address | None = None
    extra: list[Address] = field(default_factory=list)
    find_links: list[Address] = field(default_factory=list)
    without_index: bool = False
    pre: bool = False
    require_hashes: bool = False
    compiled_by_uv: bool = False  # by the comment at the start of a requirements file
    not_built: dict[str, str] = field(default_factory=dict)
    wheel_options: list[NotUnderstood] = field(default_factory=list)
    open_ends: list[WheelproofError] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
