"""Other Pythons of this host: those on PATH, of pyenv and of uv, by their (major, minor)."""

from __future__ import annotations

import os
import re
import subprocess
from functools import cache
from pathlib import Path

_ASK = "import sys; sys.stdout.write('%d.%d' % sys.version_info[:2])"


@cache
def other_pythons() -> dict[tuple[int, int], str]:
    """The path of one working CPython for each release that is found, oldest first."""
    home = Path.home()
    pyenv = Path(os.environ.get("PYENV_ROOT") or home / ".pyenv", "versions")
    uv = Path(os.environ.get("UV_PYTHON_INSTALL_DIR") or home / ".local/share/uv/python")
    folders = [Path(folder) for folder in os.environ.get("PATH", "").split(":") if folder]
    folders += sorted(path / "bin" for place in (pyenv, uv) if place.is_dir() for path in place.iterdir())
    found: dict[tuple[int, int], str] = {}
    for path in (path for folder in folders for path in sorted(folder.glob("python[23].*"))):
        if re.fullmatch(r"python[23]\.\d+", path.name) and (version := _version_of(path)) is not None:
            found.setdefault(version, str(path))
    return dict(sorted(found.items()))


def _version_of(path: Path) -> tuple[int, int] | None:
    """The release of an interpreter that runs; a version manager's script may lead to none."""
    try:
        run = subprocess.run([path, "-S", "-c", _ASK], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.fullmatch(r"(\d+)\.(\d+)", run.stdout)
    return (int(match[1]), int(match[2])) if match else None
