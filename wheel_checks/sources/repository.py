"""The repository of a folder: settings of one repository apply to nothing outside of it."""

from __future__ import annotations

import os
from pathlib import Path

VERSION_CONTROL = (".git", ".hg", ".svn", ".jj")
"""Names in the root of a repository; in a worktree and in a submodule ``.git`` is a file."""


def repository_of(folder: Path) -> Path | None:
    """The nearest folder, upwards from ``folder``, that is the root of a repository; no link is followed."""
    return next((place for place in (folder, *folder.parents) if _is_root(place)), None)


def _is_root(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in VERSION_CONTROL)
