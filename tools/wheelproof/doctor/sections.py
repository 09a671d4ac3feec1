"""Reads the sections of the facts side by side, within one overall time: a reader that hangs or crashes costs only its
own section.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from wheel_checks.model import Unavailable
from wheelproof.doctor.children import TIME_IS_OVER, Budget


class Several(dict[str, Any]):
    """What a reader gives that reads several sections: each by its name."""


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
        """The sections, the seconds that each took, and what happened to those that were not read."""
        values: dict[str, Any] = {}
        unread: dict[str, str] = {}
        for name, reading in self._readings.items():
            value = self.get(name)
            told = value if isinstance(value, Several) else dict.fromkeys(reading.fields, value)
            values |= told
            unread |= {n: v.reason for n, v in told.items() if v == TIME_IS_OVER or reading.crashed}
        return values, {name: round(reading.seconds, 3) for name, reading in self._readings.items()}, unread


class _Reading:
    """One section. Its thread is a daemon: one that waits inside the kernel must not keep the doctor from ending."""

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
        except Exception as error:  # noqa: BLE001  # a defect in one reader must not hide what the others know
            self.crashed = True
            self.value = Unavailable(f"its reader crashed: {type(error).__name__}: {error}")
        self.seconds = time.monotonic() - started
        self.done.set()
        self._on_read()
