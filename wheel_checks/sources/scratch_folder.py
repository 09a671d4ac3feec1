"""Temporary folders that do not pile up: what a killed process left is removed by the next one that needs a folder.

Who uses a folder holds a lock on it (flock), which the operating system frees however the process ends. So a folder of
ours without a lock belongs to a process that is gone; its number, which another process may have by now, is not asked.
"""

import contextlib
import fcntl
import functools
import os
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

KIND = "wheelproof"


@contextlib.contextmanager
def scratch_folder(kind: str = KIND, where: str | os.PathLike[str] = "") -> Iterator[Path]:
    """A new folder that only this user can read, below ``where`` (the temporary folder), removed when the block ends.

    Removes what processes that are gone have left of the same ``kind`` there. Raises OSError when none can be made.
    """
    place = Path(where or tempfile.gettempdir())
    _sweep_once(kind, place)
    folder, lock = _locked_folder(prefix_of(kind), place)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def sweep(kind: str = KIND, where: str | os.PathLike[str] = "", seconds: float = 0) -> list[str]:
    """Remove what is of ``kind``, has no owner left and is older than ``seconds``; return the names.

    Never raises OSError. A file, unlike a folder of ``scratch_folder``, may be a moment old and not locked yet.
    """
    place = Path(where or tempfile.gettempdir())
    removed = []
    with contextlib.suppress(OSError), os.scandir(place) as entries:
        names = [entry.name for entry in entries if entry.name.startswith(prefix_of(kind))]
        removed = [name for name in names if _remove_abandoned(place / name, seconds)]
    return removed


def _remove_abandoned(path: Path, seconds: float) -> bool:
    """Remove a folder or file of this user that no process holds a lock on. True when it did."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        status = os.fstat(descriptor)
        if status.st_uid != os.geteuid() or time.time() - status.st_mtime < seconds:
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if stat.S_ISDIR(status.st_mode):
            shutil.rmtree(path, ignore_errors=True)
        elif stat.S_ISREG(status.st_mode):
            path.unlink(missing_ok=True)
    except OSError:  # it is in use, or this file system has no locks
        return False
    finally:
        os.close(descriptor)
    return not os.path.lexists(path)


_sweep_once = functools.cache(sweep)


def prefix_of(kind: str) -> str:
    """How names of ``kind`` begin: with a number of this host, since file systems that hosts share may lack locks."""
    return f"{kind}-{zlib.crc32(os.uname().nodename.encode()):08x}-"


def _locked_folder(prefix: str, place: Path) -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=place))  # with mode 0700
        try:
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # another process took it for abandoned before it could be locked
            continue
        if lock_file(lock) and os.path.lexists(folder):
            return folder, lock
        os.close(lock)


def lock_file(descriptor: int) -> bool:
    """Lock an open file or folder; False when a process has it that is about to remove it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks: no other process gets one there either
        pass
    return True
