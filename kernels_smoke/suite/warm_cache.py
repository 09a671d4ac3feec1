"""Whether Triton's cache holds everything already that a run will launch: then nothing need be compiled beforehand.

A run that has compiled all leaves an empty file in the cache, whose name tells what was compiled. When the cache was
emptied since, or parts of it, cases compile what they lack: slower, and as right.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def mark_of(
    kernels: Sequence[str], level: str, target: str, versions: Sequence[str], environment: Mapping[str, str]
) -> Path:
    """The file that says that ``kernels`` were compiled for ``target`` at ``level``, as this source code has them.

    ``versions`` are those of torch and triton. Triton's own variables may change what it compiles, so they count, too.
    """
    said = sorted(f"{name}={value}" for name, value in environment.items() if name.startswith("TRITON_"))
    digest = hashlib.sha256("\0".join((*kernels, level, target, *versions, *said)).encode())
    for path in sorted(ROOT.rglob("*.py")):
        digest.update(path.read_bytes())
    return _folder(environment) / f"kernels_smoke-{digest.hexdigest()[:32]}"


def is_filled(mark: Path) -> bool:
    """True when a run has left ``mark``."""
    return mark.is_file()


def leave(mark: Path) -> None:
    """Leave ``mark``; where it cannot be written, the next run compiles again, which is quick with a warm cache."""
    with contextlib.suppress(OSError):
        mark.touch()


def _folder(environment: Mapping[str, str]) -> Path:
    """Where Triton keeps what it compiled: as its knobs say (triton/knobs.py, cache_knobs)."""
    home = environment.get("TRITON_HOME") or os.path.expanduser("~")  # noqa: PTH111  # "~" stays where there is no home
    return Path(environment.get("TRITON_CACHE_DIR") or Path(home, ".triton", "cache"))
