"""What the files of a tree ask an installer for: lines, projects, and the indexes that they name."""

from dataclasses import dataclass, field
from enum import StrEnum

from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import WheelproofError
from wheel_checks.sources.trust import Address


@dataclass(frozen=True, slots=True)
class UvSource:
    """One table of [tool.uv.sources]: where a package comes from on the targets where ``marker`` holds.

    An address of the kind "index" is that of an index, of the kind "file" that of a wheel.
    """

    address: Address
    marker: Marker | None = None


@dataclass(frozen=True, slots=True)
class Line:
    """A requirement and where it is ("requirements.txt:3"). Its URL, if any, is as the tree has it.

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
    """What a user names on the command line of an installer besides requirements."""

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
    """What files ask for.

    ``index``, ``extra`` and ``find_links`` are as they are present, but for local folders, which are file URLs.
    ``not_built`` maps the packages that are wanted as source archives to where that is said. ``open_ends`` leave the
    whole answer open: what is requested is known only to who fetches or builds. ``faults`` are sentences about what an
    installer would refuse.
    """

    lines: list[Line] = field(default_factory=list)
    projects: list[Project] = field(default_factory=list)
    index: Address | None = None
    extra: list[Address] = field(default_factory=list)
    find_links: list[Address] = field(default_factory=list)
    without_index: bool = False
    pre: bool = False
    require_hashes: bool = False
    not_built: dict[str, str] = field(default_factory=dict)
    open_ends: list[WheelproofError] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
