"""The depths at which a wheel is read, and the texts for facts that a depth omits."""

from __future__ import annotations

import enum

from wheel_checks.model import Unavailable

NO_ELFS = Unavailable("ELF files are not read at depth quick", "--depth links")
NOT_COMPARED = Unavailable("contents are not compared at depth quick", "--depth full reads every byte")
NO_STARTUP = Unavailable("the files that run code when Python starts were not read")
NO_HEADS = Unavailable("native members are not read at depth quick", "--depth links")
NO_RUNTIMES = Unavailable("static CUDA runtimes are not searched for at this depth", "--depth gpu")
NO_GPU_CODE = Unavailable("GPU code is not read at this depth", "--depth gpu")


class Depth(enum.StrEnum):
    """How deep to look: quick reads the directory and small members, links also every ELF file and the wheels that it
    links to, gpu also the GPU code, full every byte.
    """

    QUICK = "quick"
    LINKS = "links"
    GPU = "gpu"
    FULL = "full"

    def includes(self, other: Depth) -> bool:
        """True when this depth reads what ``other`` reads."""
        return list(Depth).index(self) >= list(Depth).index(other)
