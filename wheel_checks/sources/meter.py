"""Counts the cost of reading, from many threads at once."""

from __future__ import annotations

import threading

from wheel_checks.sources.byte_source import Cost


class Meter:
    """A sum of costs. Adding to it adds to ``parent`` too."""

    def __init__(self, parent: Meter | None = None) -> None:
        self._parent = parent
        self._cost = Cost()
        self._lock = threading.Lock()

    @property
    def cost(self) -> Cost:
        """The sum so far."""
        return self._cost

    def add(self, *, bytes_read: int = 0, requests: int = 0, bytes_cached: int = 0) -> None:
        """Add to the sum: bytes of bodies, requests sent, bytes that the cache spared."""
        with self._lock:
            self._cost += Cost(bytes_read, requests, bytes_cached)
        if self._parent is not None:
            self._parent.add(bytes_read=bytes_read, requests=requests, bytes_cached=bytes_cached)
