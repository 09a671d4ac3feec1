"""Puts an environment back as it was before a repair: byte for byte, and from wherever a process was killed."""

import contextlib
import fcntl
import os
import shutil
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from wheel_checks.errors import SourceError
from wheelproof.doctor.repair.snapshot import (
    DONE,
    FOLDER,
    UNDOING,
    UV_LOCK,
    Snapshot,
    State,
    States,
    state_or_none,
    survey,
    sync_folder,
)

SHOWN = 5  # files in a sentence


@dataclass(frozen=True, slots=True)
class Undone:
    """How many files, links and folders were restored, and how many that had come were removed."""

    restored: int
    removed: int


class ChangedSinceError(SourceError):
    """Files of the repair were changed by others since; nothing was restored."""


def changes(before: States, after: States) -> set[str]:
    """The paths that differ."""
    return {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}


@contextlib.contextmanager
def alone(prefix: Path) -> Iterator[None]:
    """Hold the environment against another repair of it. Raises SourceError when one is under way."""
    descriptor = os.open(prefix, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise SourceError(f"another wheelproof process is repairing {prefix}", hint="wait for it to finish") from None
    except OSError:  # a file system without locks
        pass
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            os.close(descriptor)


def undo(prefix: Path) -> Undone:
    """Put the environment back as it was before its last repair, and remove the snapshot.

    A repair that was killed is restored with all that changed since it began. Raises NotFoundError where there is
    nothing to undo, ChangedSinceError where others changed files of the repair since, SourceError and FormatError.
    """
    snapshot = Snapshot(prefix)
    state = snapshot.state()
    saved, before = snapshot.before()
    after = snapshot.after() if state == DONE else {}
    _refuse_changes(prefix, after)
    now = survey(prefix)
    scope = set(after) if state == DONE else changes(before, now)
    with contextlib.suppress(OSError):  # on a full disk: renames need no room
        snapshot.note(UNDOING)
    done = _put_back(snapshot, saved, before, now, scope)
    snapshot.remove()
    return done


def _refuse_changes(prefix: Path, after: Mapping[str, State | None]) -> None:
    """Raise ChangedSinceError where something is not as the repair left it."""
    noted = [(path, expected) for path, expected in sorted(after.items()) if path != UV_LOCK]
    wrong = [path for path, expected in noted if not _is_as_left(prefix / path, expected)]
    if wrong:
        more = f" and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
        raise ChangedSinceError(
            f"these files were changed after the repair, by something else: {', '.join(wrong[:SHOWN])}{more}; "
            "nothing was restored",
            hint=f"the original files are in {prefix / FOLDER}",
        )


def _is_as_left(path: Path, expected: State | None) -> bool:
    present = state_or_none(path)
    if expected is None or present is None:
        return present is expected
    return present.kind == "d" == expected.kind or present.is_like(expected)


def _put_back(snapshot: Snapshot, saved: tuple[str, ...], before: States, now: States, scope: set[str]) -> Undone:
    prefix, numbers = snapshot.prefix, {path: number for number, path in enumerate(saved)}
    _check_links(prefix, {*scope, *saved})
    new = sorted((path for path in scope if path not in before and path in now), reverse=True)
    removed = sum(_remove(prefix / path) for path in new)
    restored = 0
    for path in sorted(path for path in scope if path in before):
        restored += _restore(snapshot, path, before[path], numbers.get(path))
    for folder in {(prefix / path).parent for path in scope}:
        if folder.is_dir():
            sync_folder(folder)
    return Undone(restored, removed)


def _restore(snapshot: Snapshot, path: str, state: State, number: int | None) -> bool:
    """Put one entry back; True when it was not there as it was."""
    target, present = snapshot.prefix / path, state_or_none(snapshot.prefix / path)
    if state.kind == "d":
        if present is None or present.kind != "d":
            _remove(target)
            target.mkdir(parents=True)
        if present != state:
            target.chmod(state.mode)
        return present != state
    if state.kind == "l":
        if present == state:
            return False
        _remove(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.symlink_to(state.target)
        return True
    if present == state:
        return False
    copy = snapshot.copy_of(number) if number is not None else None
    if copy is None or not copy.exists():
        if present is not None and present.is_like(state):
            return False  # a rename before the kill has put it back, with another inode
        raise SourceError(f"{target} has changed, and there is no copy of it in {snapshot.folder}")
    if present is not None and present.kind == "d":
        _remove(target)
    target.parent.mkdir(parents=True, exist_ok=True)
    os.chmod(copy, state.mode)  # noqa: PTH101  # as os.utime below
    os.utime(copy, ns=(state.changed, state.changed))
    copy.replace(target)
    return True


def _remove(path: Path) -> bool:
    """Remove a file or link, and a folder that contains nothing but byte code; True when it is gone."""
    try:
        status = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not stat.S_ISDIR(status.st_mode):
        path.unlink()
        return True
    if any(entry.name != "__pycache__" for entry in os.scandir(path)):
        return False  # what others have put there since stays
    shutil.rmtree(path)
    return True


def _check_links(prefix: Path, paths: set[str]) -> None:
    """Raise SourceError where a folder of one of the paths is a link by now, which may lead out of the environment."""
    folders = {parent for path in paths for parent in Path(path).parents if parent.parts}
    linked = next((folder for folder in sorted(folders) if (prefix / folder).is_symlink()), None)
    if linked is not None:
        raise SourceError(f"{prefix / linked} has become a link, so nothing is written below it")
