"""What differs between two stacks for one target: the packages before and after, and what got worse."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wheel_checks.facts.accelerator.signals import CPU, CUDA, GPU
from wheel_checks.facts.accelerator.verdict import LABELS, NONE
from wheel_checks.facts.stack.facts import CONDA, DECLARED, NO_FILE, SDIST, WHEEL
from wheel_checks.model import Location

_DISTRIBUTIONS = {
    SDIST: "a source archive",
    NO_FILE: "no file",
    DECLARED: "not checked",
    WHEEL: "a wheel",
    CONDA: "a conda package",
}


@dataclass(frozen=True, slots=True)
class PackageSide:
    """A package on one side. ``errors`` are the messages of what fails, by rule; ``is_open``: not all is decided."""

    version: str
    distribution: str
    accelerator: str = ""
    cuda: str = ""
    errors: Mapping[str, str] = field(default_factory=dict)
    is_open: bool = False

    @property
    def built_for(self) -> str:
        """Such as "CUDA 13.0", "CPU only"; what would be installed where the accelerator is unknown."""
        if not self.accelerator:
            return _DISTRIBUTIONS.get(self.distribution, self.distribution) if self.distribution != WHEEL else "unknown"
        label = LABELS.get(self.accelerator, self.accelerator)
        return f"{label} {self.cuda}".strip() if self.accelerator == CUDA else label


@dataclass(frozen=True, slots=True)
class PackageChange:
    """A package that differs; a side is None where the package is not installed."""

    name: str
    before: PackageSide | None
    after: PackageSide | None
    place: Location | None = None

    @property
    def worse(self) -> str:
        """What got worse: "CUDA 13.0 -> CPU only", or the first failure that was not there before; "" for nothing."""
        before, after = self.before, self.after
        if after is None:
            return ""
        if before is not None and before.accelerator in GPU and after.accelerator in (CPU, NONE):
            return f"{before.built_for} -> {after.built_for}"
        there = (WHEEL, CONDA)
        if before is not None and before.distribution in there and after.distribution in (SDIST, NO_FILE):
            return f"{_DISTRIBUTIONS[before.distribution]} -> {_DISTRIBUTIONS[after.distribution]}"
        known = before.errors if before else {}
        return next((message for rule, message in after.errors.items() if rule not in known), "")

    @property
    def open(self) -> str:
        """What is not decided about the change: "CUDA 13.0 -> not known"; "" for nothing."""
        before, after = self.before, self.after
        if after is None or not after.is_open or self.worse:
            return ""
        was = f"{before.version} ({before.built_for})" if before else "not installed"
        return f"{was} -> {after.version} ({after.built_for}), not all of which could be checked"

    @property
    def summary(self) -> str:
        """The change in few words: "2.9.1 (CPU only) -> 2.11.0 (CUDA 13.0)"."""
        sides = [
            f"{side.version} ({side.built_for})" if side else "not installed" for side in (self.before, self.after)
        ]
        return " -> ".join(sides)

    @property
    def gained(self) -> bool:
        """True for a package that is for a GPU now, and was not."""
        before, after = self.before, self.after
        return bool(before and after and before.accelerator not in GPU and after.accelerator in GPU)


@dataclass(frozen=True, slots=True)
class StackChanges:
    """The changes on one target: ``where`` is the target for people, ``against`` what is compared with.

    ``worse`` and ``unknown`` are sentences about the stack as a whole: failures that are new, and what prevents the
    comparison. ``fails`` is True where what got worse is an error.
    """

    where: str
    against: str
    changes: tuple[PackageChange, ...] = ()
    worse: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    fails: bool = False
    place: Location | None = None


def compare(
    before: Mapping[str, PackageSide], after: Mapping[str, PackageSide], places: Mapping[str, Location]
) -> tuple[PackageChange, ...]:
    """The packages that differ, what got worse first."""
    names = sorted(before.keys() | after.keys())
    found = [
        PackageChange(n, before.get(n), after.get(n), places.get(n)) for n in names if before.get(n) != after.get(n)
    ]
    return tuple(sorted(found, key=lambda change: (not change.worse, not change.open, not change.gained, change.name)))
