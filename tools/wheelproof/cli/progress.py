"""One line of progress on standard error, drawn only on a terminal and gone when the work is done."""

from __future__ import annotations

import shutil
import sys
import threading
import time
from types import TracebackType
from typing import ClassVar, Self, TextIO

from wheel_checks.phrases import human_bytes, human_left

INTERVAL = 0.1  # seconds between two drawings: more often only flickers
TICK = 1.0  # seconds after which a line with an estimate is drawn again, though nothing has ended
_FEWEST = 5  # ends, and
_SHORTEST = 3.0  # seconds, before the time that is left is estimated
_ALIKE = 1.5  # by how much two estimates may differ
_STEP = 0.002  # fraction of the whole below which progress is not recorded


class Progress:
    """A context manager that shows ``reading 30 of 100 wheels, 4.1 MB, about 20 s left``.

    ``total`` is how many ``unit`` there are (0: not known yet; ``before`` is shown until it is). ``size`` is how many
    bytes there are in all, if that is known. The time that is left is estimated from bytes, or from units that are
    ``alike``; of others the time that has passed is shown. Nothing is drawn when ``quiet``, or when ``stream`` (by
    default standard error) is not a terminal. Any thread may call :meth:`advance` and :meth:`read`.
    """

    _active: ClassVar[Progress | None] = None

    def __init__(
        self,
        action: str,
        total: int = 0,
        unit: str = "wheels",
        *,
        before: str = "",
        size: int = 0,
        alike: bool = False,
        quiet: bool = False,
        stream: TextIO | None = None,
    ) -> None:
        self._action, self._unit, self.total = action, unit, total
        self._before, self._size, self._alike = before, size, alike
        self._stream = sys.stderr if stream is None else stream
        self._shown = not quiet and self._stream is not None and self._stream.isatty()
        self._lock = threading.RLock()
        self._done = self._bytes = 0
        self._last_drawn = float("-inf")
        self._start = self._began = time.monotonic()
        self._samples: list[tuple[float, float]] = []  # when so much of the whole was done
        self._ended = threading.Event()
        self._ticking = self._is_drawn = False

    def __enter__(self) -> Self:
        Progress._active = self
        self._update()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.end()
        Progress._active = None

    @classmethod
    def clear(cls) -> None:
        """Take the line away that is drawn now, so that something else can be written; it comes again by itself."""
        if Progress._active is not None:
            Progress._active.take_away()

    @classmethod
    def finish(cls) -> None:
        """Take the line away for good: the report or an error message starts on an empty line."""
        if Progress._active is not None:
            Progress._active.end()

    def end(self) -> None:
        """Draw nothing from now on."""
        self._ended.set()
        with self._lock:
            self.take_away()
            self._shown = False

    def take_away(self) -> None:
        """Leave an empty line where this one is drawn."""
        with self._lock:
            if self._is_drawn:
                self._is_drawn = False
                self._write("\r\x1b[K")

    def advance(self, done: int = 1) -> None:
        """Count ``done`` more units as finished."""
        self._update(done=done)

    def planned(self, units: int, *, alike: bool = False) -> None:
        """So many units will be worked on, from now on."""
        self.total, self._alike, self._start = units, alike, time.monotonic()

    def done(self) -> None:
        """One more unit is finished."""
        self.advance()

    def read(self, size: int) -> None:
        """Count ``size`` more bytes as read."""
        self._update(size=size)

    def __str__(self) -> str:
        """The line as it would be drawn now."""
        now = time.monotonic()
        passed = f", {now - self._began:.0f} s" if now - self._began >= _SHORTEST else ""
        if self._before and not self.total:
            return f"{self._before}{self._amount}{passed}"
        of_total = f" of {self.total}" if self.total else ""
        left = self.seconds_left(now)
        estimate = passed if left is None else f", about {human_left(left)} left"
        return f"{self._action} {self._done}{of_total} {self._unit}{self._amount}{estimate}"

    def seconds_left(self, now: float) -> float | None:
        """The time that is left; None if nothing reliable can be said.

        The mean of two estimates, if they are similar: from the pace since the start, and of the latest third.
        """
        if not (self._size or self._alike) or len(self._samples) < _FEWEST or now - self._start < _SHORTEST:
            return None
        _, done = self._samples[-1]
        if done >= 1:
            return None
        earlier = (sample for sample in reversed(self._samples) if sample[1] <= done * 2 / 3)
        then, before = next(earlier, (self._start, 0.0))
        whole = (now - self._start) / done * (1 - done)
        recent = (now - then) / (done - before) * (1 - done)
        return (whole + recent) / 2 if max(whole, recent) <= _ALIKE * min(whole, recent) else None

    @property
    def part(self) -> float:
        """How much of the whole is done, from 0 to 1; 0 if the whole is not known."""
        if self._size:
            return min(self._bytes / self._size, 1.0)
        return self._done / self.total if self.total else 0.0

    @property
    def _amount(self) -> str:
        if not self._bytes:
            return ""
        of_size = f" of {human_bytes(self._size)}" if self._size else ""
        return f", {human_bytes(self._bytes)}{of_size}"

    def _update(self, done: int = 0, size: int = 0) -> None:
        with self._lock:
            self._done += done
            self._bytes += size
            now = time.monotonic()
            if self._shown and now - self._last_drawn >= INTERVAL:
                self._draw(now)
            part = self.part
            if self._shown and part >= (self._samples[-1][1] if self._samples else 0.0) + _STEP:
                self._samples.append((now, part))
            if self._shown and (self.total or self._before or self._size) and not self._ticking:
                self._ticking = True
                threading.Thread(target=self._tick, daemon=True).start()

    def _draw(self, now: float) -> None:
        self._last_drawn = now
        self._is_drawn = True
        self._write(f"\r{str(self)[: shutil.get_terminal_size().columns - 1]}\x1b[K")

    def _tick(self) -> None:
        """Draw again periodically."""
        while not self._ended.wait(TICK):
            self._update()

    def _write(self, text: str) -> None:
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:  # the terminal has gone; the work continues
            self._shown = False
