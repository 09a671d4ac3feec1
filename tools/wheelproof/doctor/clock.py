"""When a command started, and how long it has taken."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class Clock:
    """When the command started, and how long ago that is."""

    def __init__(self) -> None:
        self.started = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        """Since it started."""
        return time.perf_counter() - self._start
