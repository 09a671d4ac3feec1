"""What an install would do to packages that are installed, and who demands it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from packaging.requirements import Requirement
from packaging.version import Version

from wheel_checks.facts.accelerator.verdict import AcceleratorFacts
from wheel_checks.facts.stack.facts import Demand
from wheel_checks.model import Unavailable


class Fate(StrEnum):
    """What becomes of an installed package."""

    KEPT = "kept"
    REPLACED = "replaced"
    REMOVED = "removed"
    ADDED = "added"


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
    """One package before and after an install; ``before`` and ``after`` are versions, "" when it is not there.

    ``machine`` is that of the target. ``accelerator`` is read from the wheel that would be taken, and is None when none
    would be taken. ``chain`` leads from what was asked for to the demand that makes the difference; it is empty when no
    requirement asks for another version (``--upgrade`` alone does it).
    """

    name: str
    before: str
    after: str
    installer: str
    machine: str
    accelerator: AcceleratorFacts | Unavailable | None = None
    file_name: str = ""
    chain: tuple[Demand, ...] = ()
    upgrade: bool = False

    @property
    def fate(self) -> Fate:
        """What becomes of it."""
        if not self.after:
            return Fate.REMOVED
        if not self.before:
            return Fate.ADDED
        return Fate.KEPT if self.before == self.after and self.accelerator is None else Fate.REPLACED

    @property
    def build(self) -> str:
        """For people: "CPU only (2.10.0+cpu) on aarch64", "" when no wheel is taken or it has no accelerator."""
        facts = self.accelerator
        if facts is None:
            return ""
        if isinstance(facts, Unavailable):
            return f"a build of which nothing is known: {facts.reason}"
        told = f" ({facts.local_version})" if facts.local_version else ""
        return f"{facts.label}{told} on {self.machine}"

    @property
    def sentence(self) -> str:
        """For people: "torch 2.9.1+cu128 would be replaced by 2.10.0, CPU only (2.10.0+cpu) on aarch64"."""
        if self.fate is Fate.KEPT:
            return f"{self.name} {self.before} is kept"
        if self.fate is Fate.REMOVED:
            return f"{self.name} {self.before} would be removed"
        build = f", {self.build}" if self.build else ""
        if self.fate is Fate.ADDED:
            return f"{self.name} {self.after} would be installed{build}"
        same = " from the index" if self.before == self.after else ""
        return f"{self.name} {self.before} would be replaced by {self.after}{same}{build}"
