"""What every executor offers: a place in which the commands of one cell run, and nothing left behind afterwards."""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from wheel_checks.model import Unavailable
from wheel_checks.process import Ended
from wheelproof.matrix.model import Cell


@dataclass(frozen=True, slots=True)
class Mount:
    """A folder or file of this host that a place shows as ``target``, an absolute path; read-only unless said."""

    source: Path
    target: str
    writable: bool = False


class Place(Protocol):
    """Where the commands of one cell run."""

    @property
    def python(self) -> str:
        """The interpreter of the cell's Python, as it is called inside."""

    def inside(self, path: Path) -> str:
        """What a path below one of the mounts is called inside. Raises ValueError for any other path."""

    def run(
        self, command: Sequence[str], *, environ: Mapping[str, str], output: Path, log: Path, deadline: float
    ) -> Ended:
        """Run ``command`` for at most ``deadline`` seconds, then kill it and all that it started; its status is 128 + N
        after signal N.

        Standard output goes to the file ``output``, standard error is appended to the file ``log``. The environment
        holds ``environ`` and what the place itself sets, and nothing of the caller's.
        """


class Executor(Protocol):
    """Makes places, and removes them."""

    @property
    def name(self) -> str:
        """As ``--executor`` calls it."""

    def obstacle(self, cell: Cell) -> Unavailable | None:
        """Why ``cell`` cannot run here, with what to do about it; None when it can."""

    def place(self, cell: Cell, mounts: Sequence[Mount]) -> AbstractContextManager[Place]:
        """The place of ``cell``, gone when the context ends, however it ends. Raises WheelproofError."""

    def sweep(self) -> Sequence[str]:
        """Remove what earlier runs that were killed left behind; the names of what was removed."""
