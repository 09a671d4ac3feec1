"""Whose a container is: the labels by which a later run finds what a killed one left behind."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.process_tree import start_time
from wheel_checks.sources.regular_file import read_start

RUN_LABEL = "wheelproof.run"
OWNER_LABEL = "wheelproof.owner"
_PROC = Path("/proc")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process of one boot of one machine: ``start`` is when it started, in clock ticks since the boot.

    A process id is given again, and means something else in another container: so a process is named by its boot, its
    process namespace, its id, and its start.
    """

    boot: str
    namespace: str
    process: str
    start: str

    def __str__(self) -> str:
        """The value of the label."""
        return f"{self.boot}/{self.namespace}/{self.process}/{self.start}"


def this_process() -> Owner:
    """The process that runs this."""
    process = str(os.getpid())
    return Owner(_boot(), _namespace(), process, start_time(process))


def is_gone(labels: Mapping[str, str]) -> bool:
    """True when the process that made a container with these labels has certainly ended."""
    parts = labels.get(OWNER_LABEL, "").split("/")
    if len(parts) != 4:
        return False
    owner = Owner(*parts)
    if owner.boot != _boot():
        return True
    return owner.namespace == _namespace() and start_time(owner.process) != owner.start


def _boot() -> str:
    return read_start(_PROC / "sys/kernel/random/boot_id", 64).decode("ascii").strip()


def _namespace() -> str:
    return str((_PROC / "self/ns/pid").stat().st_ino)
