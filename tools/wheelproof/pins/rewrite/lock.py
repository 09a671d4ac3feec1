"""One run at a time in a tree: locks on ranges of one file, which the system releases when a process dies.

A path stands for one byte of the file, at an offset made of its hash. A run holds that of its tree alone, and shares
those of the folders above it, so that runs in nested trees exclude each other, too. These are open file description
locks (fcntl(2), F_OFD_SETLK): threads exclude each other as processes do, and NFS has them as well.
"""

import contextlib
import errno
import fcntl
import hashlib
import os
import struct
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from wheel_checks.errors import DeadlineError, SourceError
from wheelproof.pins.atomic import Folder

WAIT = 60.0  # seconds for which a run waits for another one in the same tree
_TICK = 0.05  # seconds between two attempts
_BUSY = {errno.EAGAIN, errno.EACCES}


@contextlib.contextmanager
def only_run(
    folder: Folder,
    name: str,
    alone: Sequence[Path],
    shared: Sequence[Path],
    wait: float,
    on_wait: Callable[[], None],
) -> Iterator[None]:
    """Hold the paths ``alone`` alone, and ``shared`` with others, by the lock file ``name`` in ``folder``.

    ``on_wait`` is called once when another run holds one of them. Raises DeadlineError after ``wait`` seconds, and
    SourceError when the file cannot be made or locked.
    """
    path = folder.path / name
    descriptor = folder.open_lock(name)
    try:
        end = time.monotonic() + wait
        waiting = False
        while not _locked(descriptor, path, alone, shared):
            if time.monotonic() >= end:
                raise DeadlineError(
                    f"another run in the tree {alone[0]} did not finish within {wait:.0f} s; nothing was changed",
                    hint="run it again when that one has ended",
                )
            if not waiting:
                on_wait()
            waiting = True
            time.sleep(_TICK)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int, path: Path, alone: Sequence[Path], shared: Sequence[Path]) -> bool:
    """Whether all of them could be taken; else none is kept, so that no two runs wait for each other."""
    wanted = [*((fcntl.F_WRLCK, _offset(p)) for p in alone), *((fcntl.F_RDLCK, _offset(p)) for p in shared)]
    try:
        for kind, offset in wanted:
            _set(descriptor, kind, offset, 1)
    except OSError as error:
        if error.errno not in _BUSY:
            raise SourceError(f"{path} cannot be locked: {error.strerror}", hint="see XDG_STATE_HOME") from error
        _set(descriptor, fcntl.F_UNLCK, 0, 0)
        return False
    return True


def _set(descriptor: int, kind: int, offset: int, length: int) -> None:
    """Fcntl's struct flock on 64-bit Linux: type, whence, start, length, process. A length of 0 means all."""
    fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, struct.pack("@hhqqi0q", kind, os.SEEK_SET, offset, length, 0))


def _offset(path: Path) -> int:
    return int.from_bytes(hashlib.sha256(os.fsencode(path)).digest()[:8]) >> 2
