"""Which requirements are meant, and what is to become of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from wheelproof.pins.documents.names import normalized
from wheelproof.pins.model import FoundRequirement, Role

CORE = frozenset({"torch", "torchvision", "torchaudio"})
WIDE = CORE | {"torchcodec", "triton", "pytorch-triton"}
CONDA = frozenset({"pytorch", "pytorch-gpu", "pytorch-cpu", "pytorch-cuda", "torchvision", "torchaudio"})
_NVIDIA = re.compile(r"nvidia-.+-cu\d+")


class Mode(StrEnum):
    """What becomes of a requirement: it goes, it keeps its name alone, or it is pinned to what is installed."""

    DROP = "drop"
    UNPIN = "unpin"
    PIN_INSTALLED = "pin-installed"


class NameSet(StrEnum):
    """Sets of projects: torch and its two libraries, or all that come with torch."""

    CORE = "core"
    WIDE = "wide"


@dataclass(frozen=True, slots=True)
class Policy:
    """Which projects, by ``names`` or else by ``packages`` (normalised), and what happens to them.

    ``versions`` are those to pin, by name, for the mode pin-installed. ``conda`` changes conda's own packages, too;
    ``drop_orphan_index`` takes away index options for torch where nothing of torch is left.
    """

    mode: Mode = Mode.DROP
    names: NameSet = NameSet.CORE
    packages: frozenset[str] = frozenset()
    conda: bool = False
    drop_orphan_index: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)

    def means(self, name: str) -> bool:
        """Whether a project is meant."""
        if self.packages:
            return name in self.packages
        if self.names is NameSet.CORE:
            return name in CORE
        return name in WIDE or (name.startswith("nvidia-") and bool(_NVIDIA.fullmatch(name)))

    def wants(self, found: FoundRequirement) -> bool:
        """Whether a requirement is meant: by its name, and no guard that keeps torch away."""
        meant = found.name in (self.packages or CONDA) if found.role is Role.CONDA else self.means(found.name)
        return meant and not found.is_guard


def names_of(packages: list[str]) -> frozenset[str]:
    """Names as ``Policy.packages`` has them."""
    return frozenset(map(normalized, packages))
