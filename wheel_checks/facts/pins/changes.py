"""What an install would do to packages that are installed, and which package requires it."""

from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.stack.facts import Conflict, Demand
from wheel_checks.model import Unavailable


class Fate(StrEnum):
    """What becomes of an installed package.

    Shadowed: it stays, and imports find another copy in front of it. Overwritten: another package installs the same
    files. Broken: it stays, and something that it requires, or that it is built for, does not.
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
    """What a package is to its family: the framework itself, built for one release of it, or loaded by it."""

    ANCHOR = "framework"
    COMPANION = "companion"
    LIBRARY = "library"
    NAMED = "named"  # by the user


@dataclass(frozen=True, slots=True)
class Survival:
    """Whether ``installed`` is kept by ``requirement``, and why: one sentence for each clause that matters.

    ``may_fail`` is True when the requirement names a local version: an index that lacks it makes the install fail,
    which keeps what is installed as well. ``upgrade`` says for each installer what ``--upgrade`` does.
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
    fate: Fate = Fate.KEPT  # what happens to it
    # of the wheel that would be installed; None if none would be
    accelerator: AcceleratorFacts | Unavailable | None = None
    file_name: str = ""  # of that wheel
    # from what was requested to the demand that makes the difference; empty without one (``--upgrade``)
    chain: tuple[Demand, ...] = ()
    upgrade: bool = False  # whether ``--upgrade`` was given
    role: Role = Role.ANCHOR  # of the package
    place: str = ""  # folder of the copy that shadows it
    by: str = ""  # the package that overwrites it
    broken: tuple[str, ...] = ()  # requirements that it would not have
    unfit: tuple[str, ...] = ()  # packages that it would not fit
    open: tuple[str, ...] = ()  # what is unknown of it
    culprits: tuple[str, ...] = ()  # packages that break it

    @property
    def is_lost(self) -> bool:
        """Whether imports would no longer find what is installed."""
        return self.fate in LOST

    @property
    def build(self) -> str:
        """For people: "CPU only (2.10.0+cpu) on aarch64", "" when no wheel is taken or it has no accelerator."""
        facts = self.accelerator
        if facts is None:
            return ""
        if isinstance(facts, Unavailable):
            return f"an unknown build: {facts.reason}"
        told = f" ({facts.local_version})" if facts.local_version else ""
        return f"{facts.label}{told} on {self.machine}"

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
    """One install as a whole. ``conflict`` says why nothing at all would be done, ``open`` what is unknown of it."""

    conflict: Conflict | None = None
    open: tuple[str, ...] = ()
