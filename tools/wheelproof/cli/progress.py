"""One line of progress on standard error, drawn only on a terminal and gone when the work is done."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import Self, TextIO

INTERVAL = 0.1  # seconds between two drawings: more often only flickers


class Progress:
    """A context manager that shows ``reading 3 of 10 wheels, 4.1 MB``.

    ``total`` is how many ``unit`` there are (0: not known yet). Nothing is drawn when ``quiet``, or when ``stream``
    (by default standard error) is not a terminal. Any thread may call :meth:`advance` and :meth:`read`.
    """

    def __init__(
        self, action: str, total: int = 0, unit: str = "wheels", *, quiet: bool = False, stream: TextIO | None = None
    ) -> None:
        self._action, self._unit, self.total = action, unit, total
        self._stream = sys.stderr if stream is None else stream
        self._shown = not quiet and self._stream is not None and self._stream.isatty()
        self._lock = threading.Lock()
        self._done = self._bytes = 0
        self._last_drawn = float("-inf")

    def __enter__(self) -> Self:
        self._update()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        with self._lock:
            if self._shown:
                self._write("\r\x1b[K")  # the report or an error message starts on an empty line
            self._shown = False

    def advance(self, done: int = 1) -> None:
        """Count ``done`` more units as finished."""
        self._update(done=done)

    def planned(self, units: int) -> None:
        """So many units will be worked on."""
        self.total = units

    def done(self) -> None:
        """One more unit is finished."""
        self.advance()

    def read(self, size: int) -> None:
        """Count ``size`` more bytes as read."""
        self._update(size=size)

    def __str__(self) -> str:
        """The line as it would be drawn now."""
        of_total = f" of {self.total}" if self.total else ""
        amount = f", {self._bytes / 1e6:.1f} MB" if self._bytes else ""
        return f"{self._action} {self._done}{of_total} {self._unit}{amount}"

    def _update(self, done: int = 0, size: int = 0) -> None:
        with self._lock:
            self._done += done
            self._bytes += size
            now = time.monotonic()
            if self._shown and now - self._last_drawn >= INTERVAL:
                self._last_drawn = now
                self._write(f"\r{str(self)[: shutil.get_terminal_size().columns - 1]}\x1b[K")

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # the terminal has gone; the work goes on
            self._shown = False
