"""How every command opens its report when it starts, and closes it with what it found."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from wheel_checks.model import FailOn, Overview, Report, Subject
from wheelproof import __version__


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True)
class OpenReport:
    """The report that ``command`` is making, and when it began, in UTC and in seconds."""

    command: str
    started: str = field(default_factory=_now)
    start: float = field(default_factory=time.perf_counter)

    def close(
        self,
        subjects: Iterable[Subject],
        fail_on: FailOn,
        *,
        bytes_read: int = 0,
        requests: int = 0,
        overview: Overview | None = None,
    ) -> Report:
        """The report on ``subjects``, with the time since it was opened."""
        return Report(
            command=self.command,
            version=__version__,
            started=self.started,
            seconds=time.perf_counter() - self.start,
            subjects=tuple(subjects),
            fail_on=fail_on,
            bytes_read=bytes_read,
            requests=requests,
            overview=overview,
        )
