"""Who may use a GPU: several processes at once, or one alone. Imports neither torch nor triton."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path


class Gpu:
    """A GPU that the processes share which know ``folder``.

    Locks on files, which are released when a process dies: a waiting process has the first lock while it waits for the
    second, so that a process that needs the GPU alone is not starved.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._files: list[int] = []
        self._held = 0

    def shared(self) -> contextlib.AbstractContextManager[None]:
        """Use it next to others."""
        return self._holding(fcntl.LOCK_SH)

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """Use it alone, as long as all others ask, too."""
        return self._holding(fcntl.LOCK_EX)

    @contextlib.contextmanager
    def _holding(self, kind: int) -> Iterator[None]:
        before = self._held
        if before in {kind, fcntl.LOCK_EX}:
            yield
            return
        self._take(kind)
        try:
            yield
        finally:
            self._take(before)

    def _take(self, kind: int) -> None:
        if not self._files:  # of this process: a lock is one of an open file, which a child would have in common
            self._files = [os.open(Path(self.folder, name), os.O_RDWR | os.O_CREAT) for name in ("queue", "gpu")]
        queue, gpu = self._files
        if self._held:
            fcntl.flock(gpu, fcntl.LOCK_UN)
        if kind:
            fcntl.flock(queue, fcntl.LOCK_EX)
            fcntl.flock(gpu, kind)
            fcntl.flock(queue, fcntl.LOCK_UN)
        self._held = kind
