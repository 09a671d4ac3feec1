"""Wait for an event for as long as it takes on a loaded machine, so that only a real hang fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

PATIENCE = 600.0  # seconds; no passing test waits for it, on any machine
TICK = 0.01

T = TypeVar("T")


def wait_until(happened: Callable[[], T], what: str = "what was waited for") -> T:
    """The first true answer of ``happened``. Raises AssertionError if none exists within PATIENCE."""
    end = time.monotonic() + PATIENCE
    while not (answer := happened()):
        assert time.monotonic() < end, f"{what} did not happen"
        time.sleep(TICK)
    return answer


def in_time(run: Callable[[float], T], begun: Callable[[T], object], deadline: float = 0.3) -> T:
    """The first answer of ``run(deadline)`` that ``begun`` accepts; each deadline is twice the last.

    For children that end at their deadline and must reach ``begun`` before, which depends on the load. Raises
    AssertionError when even PATIENCE is too short.
    """
    while not begun(answer := run(deadline)):
        deadline *= 2
        assert deadline < PATIENCE, answer
    return answer


def has_ended(pid: int) -> bool:
    """Whether a process has ended, also when its parent has not collected it yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return True
