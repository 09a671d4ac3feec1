"""Which requirements are meant, and what is to become of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wheel_checks.facts.pins.families import TORCH, Family, as_pattern, family, matches
from wheelproof.pins.model import FoundRequirement, Role


class Mode(StrEnum):
    """What becomes of a requirement: it goes, it keeps its name alone, or it is pinned to what is installed."""

    DROP = "drop"
    UNPIN = "unpin"
    PIN_INSTALLED = "pin-installed"


class NameSet(StrEnum):
    """Sets of projects of a family: torch and its two libraries, or all that come with torch."""

    CORE = "core"
    WIDE = "wide"


@dataclass(frozen=True, slots=True)
class Policy:
    """Which projects, by ``names`` of ``families`` or else by ``packages``, and what happens to them.

    ``packages`` are normalized names or globs. ``versions`` are those to pin, by name, for the mode pin-installed.
    ``conda`` changes conda's own packages, too; ``drop_orphan_index`` takes away index options for torch where nothing
    of torch is left.
    """

    mode: Mode = Mode.DROP
    names: NameSet = NameSet.CORE
    packages: frozenset[str] = frozenset()
    conda: bool = False
    drop_orphan_index: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)
    families: tuple[Family, ...] = field(default_factory=lambda: (family(TORCH),))

    @property
    def is_torch(self) -> bool:
        """Whether torch's family is meant, and nothing else."""
        return not self.packages and [one.name for one in self.families] == [TORCH]

    def means(self, name: str) -> bool:
        """Whether a project is meant."""
        if self.packages:
            return matches(name, self.packages)
        return any(one.in_set(name, wide=self.names is NameSet.WIDE) for one in self.families)

    def means_conda(self, name: str) -> bool:
        """Whether a package of conda's channels is meant."""
        return matches(name, self.packages or [name for one in self.families for name in one.conda])

    def wants(self, found: FoundRequirement) -> bool:
        """Whether a requirement is meant: by its name, and no guard that keeps torch away."""
        meant = self.means_conda(found.name) if found.role is Role.CONDA else self.means(found.name)
        return meant and not found.is_guard and found.role is not Role.MATCHED

    def unmatched(self, names: Iterable[str]) -> list[str]:
        """The ``packages`` that none of these names matches."""
        there = set(names)
        return sorted(pattern for pattern in self.packages if not any(matches(name, (pattern,)) for name in there))


def names_of(packages: Iterable[str]) -> frozenset[str]:
    """Names and globs as ``Policy.packages`` has them."""
    return frozenset(map(as_pattern, packages))
