"""Cells on this host itself: an empty virtual environment of the cell's Python, made for each, gone afterwards."""

import contextlib
import functools
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.commands import in_words
from wheel_checks.commands import run as command
from wheel_checks.errors import SourceError
from wheel_checks.model import Unavailable
from wheel_checks.phrases import joined
from wheel_checks.process import Ended
from wheel_checks.sources.scratch_folder import scratch_folder, sweep
from wheel_checks.sources.uv_binary import run_uv
from wheelproof.matrix.commands import run_command
from wheelproof.matrix.executors.base import Mount
from wheelproof.matrix.model import Cell

NVIDIA_CONTROL = Path("/dev/nvidiactl")  # made by the driver
_KIND = "wheelproof-place"
_PATIENCE = 60.0  # seconds for uv to find an interpreter, and to make an environment of it


@dataclass(frozen=True, slots=True)
class VenvPlace:
    """A virtual environment; paths are what they are outside."""

    folder: Path
    mounts: tuple[Mount, ...]

    @property
    def python(self) -> str:
        """The interpreter of the environment."""
        return str(self.folder / "venv" / "bin" / "python")

    def inside(self, path: Path) -> str:
        """The path itself. Raises ValueError for one below none of the mounts."""
        if not any(path.absolute().is_relative_to(mount.source.absolute()) for mount in self.mounts):
            raise ValueError(f"{path} is not below any mount")
        return str(path.absolute())

    def run(
        self, command: Sequence[str], *, environ: Mapping[str, str], output: Path, log: Path, deadline: float
    ) -> Ended:
        """As of the protocol. Raises SourceError when the command cannot be started."""
        own = {
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "LANG": "C.UTF-8",
            "PATH": os.environ.get("PATH", os.defpath),
        }
        return run_command(command, environ=own | dict(environ), output=output, log=log, deadline=deadline)


@dataclass(frozen=True, slots=True)
class VenvExecutor:
    """Runs cells of this host's own architecture."""

    name: str = "venv"

    def obstacle(self, cell: Cell) -> Unavailable | None:
        """Why ``cell`` cannot run here, with what to do about it; None when it can. Raises SourceError without uv."""
        here = platform.machine()
        if cell.platform != here:
            return Unavailable(f"the cell is for {cell.platform}, but this host is {here}", "--executor docker")
        if cell.system_packages:
            named = joined(cell.system_packages)
            what = f"the cell needs Debian packages, {named}, which are not installed into this host"
            return Unavailable(what, "--executor docker")
        if cell.needs_gpu and not NVIDIA_CONTROL.exists():
            return Unavailable("the cell needs a GPU, but no GPU driver is loaded here")
        if find_python(cell.python) is None:
            return Unavailable(f"there is no Python {cell.python} here", _how_to_get(cell))
        return None

    @contextlib.contextmanager
    def place(self, cell: Cell, mounts: Sequence[Mount]) -> Iterator[VenvPlace]:
        """The place of ``cell``: a temporary folder with an environment, which is removed. Raises SourceError."""
        python = find_python(cell.python)
        if python is None:
            raise SourceError(f"there is no Python {cell.python} here", hint=_how_to_get(cell))
        with scratch_folder(_KIND) as folder:
            _make_environment(python, folder / "venv")
            yield VenvPlace(folder, tuple(mounts))

    def sweep(self) -> Sequence[str]:
        """Remove the folders of processes that are gone."""
        return sweep(_KIND)


@functools.cache
def find_python(version: str) -> str | None:
    """The path of an interpreter of this version, as uv finds it; None if none exists. Nothing is downloaded."""
    options = ("--no-python-downloads", "--no-project", "--no-config", "--system")
    answer = run_uv(["python", "find", *options, version], os.environ, _PATIENCE)
    return answer.output.strip() or None if answer.status == 0 else None


def _how_to_get(cell: Cell) -> str:
    return in_words(command("uv", "python", "install", operands=[cell.python]))


def _make_environment(python: str, folder: Path) -> None:
    options = ("--quiet", "--no-project", "--no-config", "--python", python)
    answer = run_uv(["venv", *options, str(folder)], os.environ, _PATIENCE)
    if answer.status:
        raise SourceError(f"uv could not make an environment: {' '.join(answer.words.split())[-500:]}")
