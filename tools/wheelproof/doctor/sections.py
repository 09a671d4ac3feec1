"""Reads the sections in parallel, within one time limit: a reader that hangs or crashes loses only its own."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from wheel_checks.model import Unavailable
from wheelproof.doctor.children import TIME_IS_OVER, Budget


class Several(dict[str, Any]):
    """The result of a reader of several sections, by name."""


class Sections:
    """Sections that are being read, each in its own thread. A reader may wait for others by :meth:`get`.

    ``on_read`` is called whenever one has been read.
    """

    def __init__(self, budget: Budget, on_read: Callable[[], object] = lambda: None) -> None:
        self._budget, self._on_read = budget, on_read
        self._readings: dict[str, _Reading] = {}

    def start(self, name: str, read: Callable[[], Any], fields: Sequence[str] | None = None) -> None:
        """Begin to read a section; ``read`` gives its facts, or ``Unavailable``.

        With ``fields`` it gives :class:`Several`, and those are the sections that are not available when it fails.
        """
        known = (name,) if fields is None else tuple(fields)
        self._readings[name] = _Reading(name, read, known, self._on_read)

    def get(self, name: str) -> Any:
        """The facts of a section, or ``Unavailable`` when its reader failed or the time is over."""
        reading = self._readings[name]
        return reading.value if reading.done.wait(self._budget.left) else TIME_IS_OVER

    def all(self) -> tuple[dict[str, Any], dict[str, float], dict[str, str]]:
        """The sections, the seconds that each took, and the reasons of unread ones."""
        values: dict[str, Any] = {}
        unread: dict[str, str] = {}
        for name, reading in self._readings.items():
            value = self.get(name)
            section = value if isinstance(value, Several) else dict.fromkeys(reading.fields, value)
            values |= section
            unread |= {n: v.reason for n, v in section.items() if v == TIME_IS_OVER or reading.crashed}
        return values, {name: round(reading.seconds, 3) for name, reading in self._readings.items()}, unread


class _Reading:
    """One section. Its thread is a daemon, since a thread waiting in the kernel must not block the exit."""

    def __init__(
        self, name: str, read: Callable[[], Any], fields: tuple[str, ...], on_read: Callable[[], object]
    ) -> None:
        self.fields = fields
        self._on_read = on_read
        self.value: Any = None
        self.crashed = False
        self.seconds = 0.0
        self.done = threading.Event()
        threading.Thread(target=self._run, args=(read,), name=name, daemon=True).start()

    def _run(self, read: Callable[[], Any]) -> None:
        started = time.monotonic()
        try:
            self.value = read()
        except Exception as error:  # noqa: BLE001  # a defect in one reader must not hide other facts
            self.crashed = True
            self.value = Unavailable(f"its reader crashed: {type(error).__name__}: {error}")
        self.seconds = time.monotonic() - started
        self.done.set()
        self._on_read()
