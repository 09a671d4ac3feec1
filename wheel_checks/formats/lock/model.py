"""The content of lock files in any format: packages, their files, and their dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wheel_checks.formats.index.page import IndexFile

VCS, DIRECTORY, PROJECT, CONDA = "vcs", "directory", "project", "conda"  # packages that are no file of an index

UV, PYLOCK, POETRY, PDM, PIXI = "uv", "pylock", "poetry", "pdm", "pixi"


@dataclass(frozen=True, slots=True)
class LockedDependency:
    """An edge of the graph."""

    name: str  # of the required package
    extras: tuple[str, ...] = ()  # of that package that are required
    marker: str = ""  # PEP 508; if empty, it always holds
    version: str | None = None  # chooses among packages of one name
    origin: str | None = None  # chooses among packages of one name, as in ``LockedPackage``
    specifier: str = ""  # the required versions, such as >=2.0; if empty, any


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One package of a lock."""

    name: str  # as in PEP 503
    version: str  # "" for a direct reference without one
    files: tuple[IndexFile, ...]  # wheels and source archive; ``url`` is "" if the lock only has names
    source: str | None = None  # VCS, DIRECTORY, PROJECT (what the lock is made for) or CONDA; None for an index
    direct: bool = False  # whether a file is named by a URL or path, not chosen from an index
    marker: str = ""  # PEP 508; if empty, it is always installed
    registry: str | None = None  # URL of the index that it comes from
    origin: str | None = None  # identifies the source, as edges state it
    build: str | None = None  # conda's build string
    requires_python: str = ""  # versions of Python, such as >=3.10; if empty, all
    dependencies: tuple[LockedDependency, ...] = ()  # what it always requires
    optional: Mapping[str, tuple[LockedDependency, ...]] = field(default_factory=dict)  # further dependencies by extra
    # further dependencies by dependency group
    development: Mapping[str, tuple[LockedDependency, ...]] = field(default_factory=dict)
    in_groups: tuple[str, ...] = ()  # groups that the package belongs to
    group_markers: Mapping[str, str] = field(default_factory=dict)  # the markers of those groups that have one
    forks: tuple[str, ...] = ()  # markers of the environments for which this package is locked; if empty, all
    is_optional: bool = False  # whether only extras install it
    extras: tuple[str, ...] = ()  # extras that it provides (uv), or that this entry adds (pdm)
    line: int = 0  # of its entry in the file; 0 if unknown

    @property
    def label(self) -> str:
        """Such as "torch 2.9.1"."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Member:
    """One side of a conflict: an extra, a group, or the whole project (both None)."""

    package: str  # the project
    extra: str | None = None  # of the project
    group: str | None = None  # of the project

    def __str__(self) -> str:
        if self.extra:
            return f"extra {self.extra}"
        return f"group {self.group}" if self.group else f"project {self.package}"


@dataclass(frozen=True, slots=True)
class CondaPlatform:
    """A platform of pixi.lock: its name, conda's name for it ("linux-64"), and virtual packages ("__cuda=12.9")."""

    name: str
    subdir: str
    virtual_packages: tuple[str, ...] = ()

    def __str__(self) -> str:
        return (
            f"{self.name} ({', '.join((self.subdir, *self.virtual_packages))})" if self.virtual_packages else self.name
        )


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock file."""

    format: str  # UV, PYLOCK, POETRY, PDM or PIXI
    packages: tuple[LockedPackage, ...]  # in the order of the file
    roots: tuple[str, ...] = ()  # names of the projects that it is made for
    requirements: tuple[LockedDependency, ...] = ()  # the locked requirements if there is no project
    # requirements by dependency group, without a project
    development: Mapping[str, tuple[LockedDependency, ...]] = field(default_factory=dict)
    requires_python: str = ""  # versions of Python that it is for
    environments: tuple[str, ...] = ()  # markers of the environments it can be installed in; if empty, all
    forks: tuple[str, ...] = ()  # markers of parts that were resolved separately
    platforms: tuple[str, ...] = ()  # names of platforms, in the words of the format
    # the extras that can be chosen, with the packages that they name
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()  # groups that can be chosen
    default_groups: tuple[str, ...] = ()  # groups that are installed by default
    conflicts: tuple[tuple[Member, ...], ...] = ()  # sets whose members exclude one another
    has_groups: bool = True  # False if a format of that age does not list the groups of packages
    # pixi: positions in ``packages`` by environment and platform
    chosen: Mapping[str, Mapping[CondaPlatform, tuple[int, ...]]] = field(default_factory=dict)
