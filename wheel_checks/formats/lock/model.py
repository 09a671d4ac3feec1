"""What lock files say, whatever their format: packages, their files, and what depends on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from wheel_checks.formats.index_page import IndexFile

VCS, DIRECTORY, PROJECT, CONDA = "vcs", "directory", "project", "conda"  # packages that are no file of an index

UV, PYLOCK, POETRY, PDM, PIXI = "uv", "pylock", "poetry", "pdm", "pixi"


@dataclass(frozen=True, slots=True)
class LockedDependency:
    """An edge of the graph. ``version`` and ``origin`` choose among packages of one name, ``specifier`` does as well;
    all are "" where the lock needs none. ``marker`` is PEP 508's, "" when it always holds.
    """

    name: str
    extras: tuple[str, ...] = ()
    marker: str = ""
    version: str = ""
    origin: str = ""
    specifier: str = ""


@dataclass(frozen=True, slots=True)
class LockedPackage:
    """One package of a lock.

    ``version`` is "" when the lock states none (a direct reference); ``files`` are its wheels and its source archive,
    with ``url`` "" where the lock names files only. ``source`` is "" for files, else "vcs", "directory", "project"
    (what the lock is made for) or "conda". ``direct`` is True for a file that was named by a URL or a path instead of
    being chosen from an index. ``marker`` is PEP 508's, "" when it is always installed. ``registry`` is the index that
    it comes from, "" where the lock names none; ``origin`` identifies the source; ``build`` is conda's build string.
    ``optional`` maps extras, ``development`` dependency groups to what they add. ``in_groups`` are the groups that the
    package belongs to, with ``group_markers`` for those under a condition. ``forks`` are markers of which one holds
    where this package counts. ``line`` is that of its entry, 0 when it is unknown.
    """

    name: str
    version: str
    files: tuple[IndexFile, ...]
    source: str = ""
    direct: bool = False
    marker: str = ""
    registry: str = ""
    origin: str = ""
    build: str = ""
    requires_python: str = ""
    dependencies: tuple[LockedDependency, ...] = ()
    optional: Mapping[str, tuple[LockedDependency, ...]] = field(default_factory=dict)
    development: Mapping[str, tuple[LockedDependency, ...]] = field(default_factory=dict)
    in_groups: tuple[str, ...] = ()
    group_markers: Mapping[str, str] = field(default_factory=dict)
    forks: tuple[str, ...] = ()
    is_optional: bool = False
    extras: tuple[str, ...] = ()
    line: int = 0

    @property
    def label(self) -> str:
        """Such as "torch 2.9.1"."""
        return f"{self.name} {self.version}".strip()


@dataclass(frozen=True, slots=True)
class Member:
    """One side of a conflict: an extra, a group, or all of a project (both "")."""

    package: str
    extra: str = ""
    group: str = ""

    def __str__(self) -> str:
        if self.extra:
            return f"extra {self.extra}"
        return f"group {self.group}" if self.group else f"project {self.package}"


@dataclass(frozen=True, slots=True)
class Lock:
    """A lock file.

    ``format`` is one of "uv", "pylock", "poetry", "pdm", "pixi". ``roots`` are the names of the projects that it is
    made for, ``requirements`` what it is made for where there is no project. ``environments`` are markers of which one
    holds where the lock can be installed, ``forks`` the same for what was resolved apart; () for everywhere.
    ``platforms`` are names of platforms in the format's own words. ``extras`` and ``groups`` are those that can be
    chosen, ``default_groups`` those that are taken if none is chosen. ``conflicts`` are sets of which one member can
    be chosen. ``has_groups`` is False where a format of that age does not say which packages belong to which group.
    ``chosen`` maps the groups of pixi (its environments) to platforms and places of packages.
    """

    format: str
    packages: tuple[LockedPackage, ...]
    roots: tuple[str, ...] = ()
    requirements: tuple[LockedDependency, ...] = ()
    development: Mapping[str, tuple[LockedDependency, ...]] = field(default_factory=dict)
    requires_python: str = ""
    environments: tuple[str, ...] = ()
    forks: tuple[str, ...] = ()
    platforms: tuple[str, ...] = ()
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    groups: tuple[str, ...] = ()
    default_groups: tuple[str, ...] = ()
    conflicts: tuple[tuple[Member, ...], ...] = ()
    has_groups: bool = True
    chosen: Mapping[str, Mapping[str, tuple[int, ...]]] = field(default_factory=dict)
