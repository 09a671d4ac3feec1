"""Whether Triton's cache holds everything already that a run will launch: then nothing need be compiled beforehand.

A run that has compiled all leaves an empty file in the cache for each kernel, whose name says what was compiled. When
the cache was emptied since, or parts of it, cases compile what they lack: slower, and as right.
"""

import contextlib
import hashlib
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kernels_smoke.suite.model import LEVELS

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Marks:
    """The marks in ``folder`` of kernels that were compiled under the circumstances that ``digest`` stands for."""

    folder: Path
    digest: str

    def of(self, kernel: str, level: str) -> Path:
        """The file that says that ``kernel`` was compiled with all that ``level`` runs of it."""
        name = hashlib.sha256(f"{self.digest} {kernel} {level}".encode()).hexdigest()
        return self.folder / f"kernels_smoke-{name[:32]}"

    def cover(self, kernels: Iterable[str], level: str) -> bool:
        """True when runs at ``level``, or at one that runs more, have left the marks of all ``kernels``."""
        enough = LEVELS[LEVELS.index(level) :]
        return all(any(self.of(kernel, each).is_file() for each in enough) for kernel in kernels)

    def leave(self, kernels: Iterable[str], level: str) -> None:
        """Leave the marks; where they cannot be written, the next run compiles again, quickly from a warm cache."""
        with contextlib.suppress(OSError):
            for kernel in kernels:
                self.of(kernel, level).touch()


def marks(target: str, versions: Sequence[str], environment: Mapping[str, str]) -> Marks:
    """The marks of kernels compiled for ``target``, as this source code has them.

    ``versions`` are those of torch and triton. Triton's own variables may change what it compiles, so they count, too.
    """
    said = sorted(f"{name}={value}" for name, value in environment.items() if name.startswith("TRITON_"))
    digest = hashlib.sha256("\0".join((target, *versions, *said)).encode())
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(path.read_bytes())
    return Marks(_folder(environment), digest.hexdigest())


def _folder(environment: Mapping[str, str]) -> Path:
    """Where Triton keeps what it compiled: as its knobs say (triton/knobs.py, cache_knobs)."""
    home = environment.get("TRITON_HOME") or os.path.expanduser("~")  # "~" stays where there is no home
    return Path(environment.get("TRITON_CACHE_DIR") or Path(home, ".triton", "cache"))
