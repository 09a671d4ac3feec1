"""A snapshot of an environment before a repair: copies of its files, and a list of all paths.

A snapshot is in the environment itself, in a folder that only its user can read: on the same file system, so that a
copy can share blocks (reflink) and restoring is a rename, and removed with the environment. It has copies of the files
of changed distributions, since a hard link would change with the file. Each repair replaces the last snapshot.

The journal controls writes and removals. So it is read only from a folder and file that this user owns and no other may
write, and its paths stay in the environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import shutil
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wheel_checks.errors import FormatError, NotFoundError, SourceError
from wheel_checks.sources.regular_file import open_regular, read_start

FOLDER = ".wheelproof-repair"
JOURNAL, BEFORE, AFTER, FILES = "journal.json", "before.json", "after.json", "files"
SCHEMA = "wheelproof.repair/1"
RUNNING, DONE, UNDOING = "running", "done", "undoing"
"""The states of a repair: it was begun, it was completed, it is being restored."""

MOST_FILES = 2_000_000  # of an environment
LARGEST_LIST = 1 << 30  # bytes of a list of files
_LARGEST_JOURNAL = 1 << 16
MARGIN = 256 << 20  # bytes that stay free on the disk
_FICLONE = 0x40049409  # ioctl of Linux, linux/fs.h
UV_LOCK = ".lock"  # which uv makes in an environment, also to plan
STAGE = ".wheelproof-stage"  # the kind of a scratch folder in the environment


@dataclass(frozen=True, slots=True)
class State:
    """One file, link or folder. ``kind`` is "f", "l" or "d"; ``size`` in bytes, ``changed`` the time of its content in
    ns, ``inode`` its number, ``target`` where a link leads.
    """

    kind: str
    mode: int
    size: int = 0
    changed: int = 0
    inode: int = 0
    target: str = ""

    def is_like(self, other: State | None) -> bool:
        """Whether both have the same content, as far as their status shows: another inode may be a copy."""
        return other is not None and replace(self, inode=0) == replace(other, inode=0)


States = Mapping[str, State]
"""The state of each path, relative to the root."""


@dataclass(frozen=True)
class Snapshot:
    """The folder of a snapshot in the environment ``prefix``."""

    prefix: Path

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self.prefix / FOLDER

    @property
    def exists(self) -> bool:
        """Whether there is one."""
        return self.folder.is_dir() and not self.folder.is_symlink()

    @property
    def is_unfinished(self) -> bool:
        """Whether a repair was begun, or began to be restored, and did not come to its end."""
        if not self.exists or not os.path.lexists(self.folder / JOURNAL):
            return False
        with contextlib.suppress(SourceError, FormatError):
            return self.state() != DONE
        return False

    def state(self) -> str:
        """The progress of the repair. Raises NotFoundError without a journal, SourceError if it is not trusted,
        FormatError if it cannot be read.
        """
        if self.exists and not os.path.lexists(self.folder / JOURNAL):
            self.remove()  # of a process that was killed before a repair began, or after one was restored
        if not os.path.lexists(self.folder):
            raise NotFoundError(f"nothing to undo in {self.prefix}: no repair was made there")
        self._check_owner(self.folder)
        self._check_owner(self.folder / JOURNAL)
        document = self._read(JOURNAL, _LARGEST_JOURNAL)
        state = document.get("state") if isinstance(document, dict) else None
        if not isinstance(document, dict) or document.get("schema") != SCHEMA or state not in (RUNNING, DONE, UNDOING):
            raise FormatError(f"{self.folder / JOURNAL} is not a journal of this wheelproof", expected=SCHEMA)
        return str(state)

    def begin(self, paths: Iterable[str], before: States) -> None:
        """Copy the files at these ``paths`` (relative), record the states ``before``, and mark the repair as begun.

        The snapshot of an earlier repair goes.

        Raises SourceError if the disk is too full; then no file remains.
        """
        chosen = sorted({path for path in paths if path in before})
        needed = sum(before[path].size for path in chosen if before[path].kind == "f")
        free = shutil.disk_usage(self.prefix).free
        if free < needed + MARGIN:
            raise SourceError(
                f"the files that change have {needed:,} bytes, and {free:,} are free below {self.prefix}",
                expected=f"room for a copy of them, and {MARGIN:,} bytes more",
            )
        self.remove()
        try:
            self.folder.mkdir(mode=0o700)
            (self.folder / FILES).mkdir(mode=0o700)
            for number, path in enumerate(chosen):
                if before[path].kind == "f":
                    copy_file(self.prefix / path, self.copy_of(number))
            self._write(BEFORE, {"saved": chosen, "states": _as_json(before)})
            self.note(RUNNING)
        except OSError as error:
            self.remove()
            raise SourceError(f"the files that change cannot be copied: {error}") from error
        except BaseException:
            self.remove()
            raise

    def note(self, state: str) -> None:
        """Write down how far the repair came, durably."""
        self._write(JOURNAL, {"schema": SCHEMA, "state": state})

    def complete(self, changed: Iterable[str], after: States) -> None:
        """Record the paths that the repair ``changed``, and the states ``after`` it."""
        paths = sorted(changed)
        states = _as_json({path: after[path] for path in paths if path in after})
        self._write(AFTER, {"states": states, "gone": [path for path in paths if path not in after]})
        self.note(DONE)

    def before(self) -> tuple[tuple[str, ...], dict[str, State]]:
        """The paths of the copies, and the states of all paths. Raises FormatError for paths outside."""
        document = self._read(BEFORE, LARGEST_LIST)
        states = _states(document, self.folder / BEFORE)
        saved = document.get("saved") if isinstance(document, dict) else None
        if not isinstance(saved, list) or not all(isinstance(one, str) and one in states for one in saved):
            raise FormatError(f"{self.folder / BEFORE} is damaged")
        return tuple(saved), states

    def after(self) -> dict[str, State | None]:
        """The states recorded by :meth:`complete`: None for removed paths."""
        document = self._read(AFTER, LARGEST_LIST)
        states: dict[str, State | None] = dict(_states(document, self.folder / AFTER))
        gone = document.get("gone") if isinstance(document, dict) else None
        rows = {path: ["f", 0, 0, 0, 0, ""] for path in gone} if isinstance(gone, list) else None
        return {**states, **dict.fromkeys(_states({"states": rows}, self.folder / AFTER))}

    def copy_of(self, number: int) -> Path:
        """The copy of the saved path with this number."""
        return self.folder / FILES / str(number)

    def remove(self) -> None:
        """Remove the snapshot, its journal first: without one it is nothing to go back to."""
        if self.exists:
            (self.folder / JOURNAL).unlink(missing_ok=True)
            shutil.rmtree(self.folder)

    def _read(self, name: str, limit: int) -> object:
        path = self.folder / name
        try:
            content = read_start(path, limit + 1)
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error
        if len(content) > limit:
            raise FormatError(f"{path} has more than {limit:,} bytes")
        try:
            document: object = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise FormatError(f"{path} is damaged: {error}") from None
        return document

    def _write(self, name: str, document: object) -> None:
        temporary = self.folder / f"{name}.new"
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123  # Path.open takes no descriptor
            json.dump(document, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(self.folder / name)
        sync_folder(self.folder)

    def _check_owner(self, path: Path) -> None:
        try:
            status = path.lstat()
        except OSError as error:
            raise SourceError(f"{path} cannot be read: {error.strerror}") from error
        if stat.S_ISLNK(status.st_mode) or status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & 0o022:
            raise SourceError(
                f"{path} is writable by other users, so it is not trusted",
                expected="a file or folder that only this user owns and may write",
            )


def survey(prefix: Path) -> dict[str, State]:
    """Everything in the tree at ``prefix`` without following links, but byte code and snapshots.

    Raises SourceError for more than ``MOST_FILES`` entries, and for a folder that cannot be read.
    """
    found: dict[str, State] = {}
    folders = [""]
    while folders:
        folder = folders.pop()
        try:
            with os.scandir(prefix / folder) as entries:
                for entry in entries:
                    if entry.name in ("__pycache__", FOLDER) or entry.name.startswith(f"{STAGE}-"):
                        continue
                    path = f"{folder}{entry.name}"
                    found[path] = state_of(Path(entry.path), entry.stat(follow_symlinks=False))
                    if found[path].kind == "d":
                        folders.append(f"{path}/")
        except OSError as error:
            raise SourceError(f"{prefix / folder} cannot be read: {error.strerror}") from error
        if len(found) > MOST_FILES:
            raise SourceError(
                f"{prefix} contains more than {MOST_FILES:,} files", hint="make a new environment instead"
            )
    return found


def state_of(path: Path, status: os.stat_result) -> State:
    """The state of one entry."""
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISLNK(status.st_mode):
        return State("l", mode, target=os.readlink(path))  # noqa: PTH115  # a text that is compared
    if stat.S_ISDIR(status.st_mode):
        return State("d", mode)
    return State("f", mode, status.st_size, status.st_mtime_ns, status.st_ino)


def state_or_none(path: Path) -> State | None:
    """The state of a path, None if it does not exist."""
    try:
        return state_of(path, path.lstat())
    except (FileNotFoundError, NotADirectoryError):
        return None


def copy_file(source: Path, target: Path) -> None:
    """Copy a regular file, sharing its blocks where the file system can, with its mode and its time.

    Raises OSError, FileExistsError among them.
    """
    with open_regular(source) as reading:
        status = os.fstat(reading.fileno())
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "wb") as writing:  # noqa: PTH123  # Path.open takes no descriptor
            try:
                fcntl.ioctl(writing.fileno(), _FICLONE, reading.fileno())
            except OSError:  # another file system, or one without reflinks
                shutil.copyfileobj(reading, writing, 1 << 20)
    target.chmod(stat.S_IMODE(status.st_mode))
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))


@contextlib.contextmanager
def without_new_lock(prefix: Path) -> Iterator[None]:
    """Remove the lock file that uv makes in an environment, if there wasn't one: to plan changes nothing."""
    lock = prefix / UV_LOCK
    known = os.path.lexists(lock)
    try:
        yield
    finally:
        if not known:
            with contextlib.suppress(OSError):
                lock.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make renames in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _as_json(states: States) -> dict[str, list[object]]:
    return {path: [one.kind, one.mode, one.size, one.changed, one.inode, one.target] for path, one in states.items()}


def _states(document: object, file: Path) -> dict[str, State]:
    rows = document.get("states") if isinstance(document, dict) else None
    if not isinstance(rows, dict):
        raise FormatError(f"{file} is damaged")
    return dict(_rows(rows, file))


def _rows(rows: Mapping[object, object], file: Path) -> Iterator[tuple[str, State]]:
    for path, row in rows.items():
        parts = path.split("/") if isinstance(path, str) else [""]
        fields: list[Any] = row if isinstance(row, list) and len(row) == 6 else [None] * 6
        if not isinstance(path, str) or "\0" in path or not {"", ".", ".."}.isdisjoint(parts) or FOLDER in parts:
            raise FormatError(f"{file} names {str(path)[:200]!r}, which is not a path in the environment")
        kind, *numbers, target = fields
        if kind not in ("f", "l", "d") or not all(type(one) is int for one in numbers) or not isinstance(target, str):
            raise FormatError(f"{file} is damaged at {path[:200]!r}")
        yield path, State(kind, numbers[0], numbers[1], numbers[2], numbers[3], target)
