"""When to try again, how long to wait, and when to give up."""

import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from wheel_checks.errors import DeadlineError, SourceError

T = TypeVar("T")

_LONGEST_WAIT = 60.0  # seconds; a server that asks for more is reported at once


class Deadline:
    """An overall limit in seconds that starts now; None is no limit."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self._end = None if seconds is None else time.monotonic() + seconds

    def remaining(self, at_most: float) -> float:
        """Seconds left, but no more than ``at_most``. Raises DeadlineError when none are left."""
        if self._end is None:
            return at_most
        left = self._end - time.monotonic()
        if left <= 0:
            raise self.error()
        return min(left, at_most)

    def check(self) -> None:
        """Raise DeadlineError when the time is over."""
        self.remaining(1.0)

    def sleep(self, seconds: float) -> None:
        """Wait, or raise DeadlineError at once when the deadline comes first."""
        if self.remaining(seconds) < seconds:
            raise self.error()
        time.sleep(seconds)

    def error(self) -> DeadlineError:
        """The error that says so."""
        return DeadlineError(f"the deadline of {self._seconds:g} s passed before everything was read")


class TransientError(Exception):
    """An attempt failed in a way that may pass. ``error`` is what the user gets when it does not.

    ``wait`` is what the server asks for (Retry-After), in seconds; ``retries`` limits how often to try again.
    """

    def __init__(self, error: SourceError, *, wait: float | None = None, retries: int | None = None) -> None:
        super().__init__(str(error))
        self.error = error
        self.wait = wait
        self.retries = retries


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Up to ``retries`` more attempts, after ``backoff`` seconds, then twice that, and so on, each with jitter."""

    retries: int = 3
    backoff: float = 0.25

    def run(self, attempt: Callable[[], T], deadline: Deadline) -> T:
        """The result of ``attempt``, made again while it raises TransientError. Raises its ``error`` in the end."""
        failures = 0
        while True:
            deadline.check()
            try:
                return attempt()
            except TransientError as failure:
                self.pause(failure, failures, deadline)
                failures += 1

    def pause(self, failure: TransientError, failures: int, deadline: Deadline) -> None:
        """Wait before the next attempt (``failures`` failed earlier), or raise ``failure.error`` if none exists."""
        allowed = self.retries if failure.retries is None else min(self.retries, failure.retries)
        if failures >= allowed or (failure.wait or 0) > _LONGEST_WAIT:
            raise failure.error from failure
        jitter = random.uniform(0.5, 1.5)  # noqa: S311  # spreads clients out; nothing secret
        deadline.sleep(max(failure.wait or 0.0, self.backoff * 2**failures * jitter))
