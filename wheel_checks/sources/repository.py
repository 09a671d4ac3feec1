"""Which repository a folder is in: what one repository says decides nothing about what is outside of it."""

import os
from pathlib import Path

VERSION_CONTROL = (".git", ".hg", ".svn", ".jj")
"""What the root of a repository holds; in a worktree and in a submodule ``.git`` is a file."""


def repository_of(folder: Path) -> Path | None:
    """The nearest folder, upwards from ``folder``, that is the root of a repository; no link is followed."""
    return next((place for place in (folder, *folder.parents) if _is_root(place)), None)


def _is_root(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in VERSION_CONTROL)
