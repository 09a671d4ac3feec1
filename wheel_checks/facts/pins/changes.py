"""The changes of an install to installed packages, and the packages that require each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.stack.facts import Conflict, Demand
from wheel_checks.model import NotUnderstood, Unavailable


class Fate(StrEnum):
    """The effect of an install on an installed package.

    Shadowed: it stays, and imports find another copy in front of it. Overwritten: another package installs the same
    files. Broken: it stays, and a package that it requires, or is built for, does not.
    """

    KEPT = "kept"
    REPLACED = "replaced"
    REMOVED = "removed"
    ADDED = "added"
    SHADOWED = "shadowed"
    OVERWRITTEN = "overwritten"
    BROKEN = "broken"


LOST = (Fate.REPLACED, Fate.REMOVED, Fate.SHADOWED, Fate.OVERWRITTEN)


class Role(StrEnum):
    """The role of a package in its family: the framework itself, built for one release of it, or loaded by it."""

    ANCHOR = "framework"
    COMPANION = "companion"
    LIBRARY = "library"
    NAMED = "named"  # by the user


@dataclass(frozen=True, slots=True)
class Survival:
    """Whether ``requirement`` keeps ``installed``, with one sentence for each relevant clause.

    ``may_fail`` is True when the requirement names a local version: an index that lacks it makes the install fail,
    which keeps the installed version as well. ``upgrade`` is the effect of ``--upgrade`` for each installer.
    """

    name: str
    installed: Version
    requirement: Requirement
    kept: bool
    reasons: tuple[str, ...]
    may_fail: bool = False
    upgrade: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class PackageChange:
    """One package before and after an install."""

    name: str  # of the project
    before: str  # version; "" if it is not installed
    after: str  # version; "" if it is removed
    installer: str  # pip or uv
    machine: str  # of the target
    fate: Fate = Fate.KEPT  # the effect on it
    # of the wheel that would be installed; None if none would be
    accelerator: AcceleratorFacts | Unavailable | None = None
    file_name: str = ""  # of that wheel
    # from the user's requirement to the demand that makes the difference; empty without one (``--upgrade``)
    chain: tuple[Demand, ...] = ()
    upgrade: bool = False  # whether ``--upgrade`` was given
    role: Role = Role.ANCHOR  # of the package
    place: str = ""  # folder of the copy that shadows it
    by: str = ""  # the package that overwrites it
    broken: tuple[str, ...] = ()  # requirements that it would not have
    unfit: tuple[str, ...] = ()  # packages that it would not fit
    open: tuple[str, ...] = ()  # undecided parts
    culprits: tuple[str, ...] = ()  # packages that break it

    @property
    def is_lost(self) -> bool:
        """Whether imports would no longer find the installed copy."""
        return self.fate in LOST

    @property
    def build(self) -> str:
        """For people: "CPU only (2.10.0+cpu) on aarch64", "" when no wheel is taken or it has no accelerator."""
        facts = self.accelerator
        if facts is None:
            return ""
        if isinstance(facts, Unavailable):
            return f"an unknown build: {facts.reason}"
        local = f" ({facts.local_version})" if facts.local_version else ""
        return f"{facts.label}{local} on {self.machine}"

    @property
    def sentence(self) -> str:
        """For people: "torch 2.9.1+cu128 would be replaced by 2.10.0, CPU only (2.10.0+cpu) on aarch64"."""
        was, build = f"{self.name} {self.before}", f", {self.build}" if self.build else ""
        same = " from the index" if self.before == self.after else ""
        why = "; ".join((*self.broken, *self.unfit))
        is_new, where = self.before != self.after, f", in {self.place}" if self.place else ""
        return {
            Fate.KEPT: f"{was} is kept",
            Fate.BROKEN: f"{self.name} {self.after} would not match: {why}"
            if is_new
            else f"{was} is kept, but would be broken: {why}",
            Fate.REMOVED: f"{was} would be removed",
            Fate.ADDED: f"{self.name} {self.after} would be installed{build}",
            Fate.OVERWRITTEN: f"{was} would be overwritten by {self.by}, which installs the same files",
            Fate.SHADOWED: f"{was} would be shadowed by {self.after}{build}{where}",
            Fate.REPLACED: f"{was} would be replaced by {self.after}{same}{build}",
        }[self.fate]


@dataclass(frozen=True, slots=True)
class PlannedInstall:
    """One install as a whole."""

    conflict: Conflict | None = None  # why nothing at all would be done
    open: tuple[str, ...] = ()  # undecided parts
    not_understood: tuple[NotUnderstood, ...] = ()  # settings, options and variables
