"""The tree that a command works on: writable files are in it, links resolved, and it has one journal."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import UsageError
from wheel_checks.phrases import joined
from wheel_checks.sources.regular_file import home_folder, real_path
from wheel_checks.sources.repository import VERSION_CONTROL, repository_of


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree by the real path of its ``root``; only files below one of ``within`` are written."""

    root: Path
    within: tuple[Path, ...]

    def holds(self, path: Path) -> bool:
        """Whether the file at ``path``, links resolved, is in the tree and not in a folder of version control."""
        found = real_path(path)
        return any(
            found.is_relative_to(folder) and not _of_version_control(found.relative_to(folder).parts)
            for folder in self.within
        )


def tree_of(paths: Sequence[Path]) -> Tree:
    """The tree of the files and folders that a user names: their repository, else the folder that was named.

    A file outside of every repository belongs to its folder. Of nested trees the outer one counts; paths of several
    trees belong to their common parent folder.
    """
    found = list(dict.fromkeys(_root_of(path) for path in paths))
    within = tuple(root for root in found if not any(root != other and root.is_relative_to(other) for other in found))
    return Tree(Path(os.path.commonpath(within)), within)


def tree_to_write(paths: Sequence[Path]) -> Tree:
    """As :func:`tree_of`; raises UsageError for several trees whose common parent folder contains the home."""
    tree = tree_of(paths)
    if len(tree.within) > 1 and holds_home(tree.root):
        raise UsageError(
            f"{joined(list(map(str, tree.within)))} are different trees",
            expected="one tree at a time",
            hint="run it for each",
        )
    return tree


def holds_home(folder: Path) -> bool:
    """Whether a folder is the user's home or above it: much more than a tree."""
    return real_path(home_folder(os.environ)).is_relative_to(folder)


def ancestors(path: Path) -> Iterator[Path]:
    """The folder itself, then every folder above it."""
    yield path
    yield from path.parents


def _root_of(path: Path) -> Path:
    """A link that leads out of the repository in which it is does not change the tree."""
    here = Path(path.anchor) if path.is_absolute() else real_path(Path())
    for part in path.parts[path.is_absolute() :]:
        target = here / part
        following = real_path(target)
        if target.is_symlink() and (repository := repository_of(here)) and not following.is_relative_to(repository):
            return repository
        here = following
    folder = here if here.is_dir() else real_path(path.parent)
    return repository_of(folder) or folder


def _of_version_control(parts: Sequence[str]) -> bool:
    return any(part.lower() in VERSION_CONTROL for part in parts)
