"""How long a process has said nothing, by its own clock: time in which other processes had its CPU does not count.

On a busy machine a healthy process may be silent for minutes. So not the time that passes is measured, but what the
process does with it: it sleeps (a hung driver or GPU lets it wait), or it computes (an endless loop does). A process
that is ready to run and does not, or that is stopped (SIGSTOP), is not to blame.

Linux shows this in ``/proc``. Elsewhere all time counts as sleep.
"""

import os
import time
from dataclasses import dataclass, field

TICK = 0.5  # seconds between two looks at a process
NOT_ITS_FAULT = "RTt"  # states of proc_pid_stat(5): running or ready to run, stopped, traced


@dataclass
class Silence:
    """The silence of the process ``pid`` and of all that it started, since it was last ``heard``: seconds."""

    pid: int
    asleep: float = 0.0
    computing: float = 0.0
    _looked: float = field(default_factory=time.monotonic)
    _used: float | None = None  # seconds of CPU, at the last look

    def heard(self) -> None:
        """Begin again: the process said something."""
        self.asleep = self.computing = 0.0
        self._looked, self._used = time.monotonic(), None

    def look(self) -> None:
        """Add what the process did since the last look, if that was a ``TICK`` ago or more.

        A look that comes late counts as two ticks at most: then this process had no CPU, or the machine was asleep.
        """
        passed = time.monotonic() - self._looked
        if passed < TICK:
            return
        self._looked += passed
        used, is_ready = _activity(self.pid)
        if self._used is not None:
            self.computing += max(used - self._used, 0.0)
            passed -= max(used - self._used, 0.0)
        self._used = used
        if not is_ready:
            self.asleep += min(max(passed, 0.0), 2 * TICK)

    def exceeds(self, patience: float, computing: float = 1.0) -> bool:
        """True when it slept for ``patience`` seconds, or used the CPU for ``computing`` times as many."""
        return self.asleep >= patience or self.computing >= computing * patience


def _activity(pid: int) -> tuple[float, bool]:
    """Seconds of CPU that a process and its descendants have used, and whether one of them was kept from sleeping."""
    used, is_ready = 0.0, False
    for process in (pid, *descendants(pid)):
        try:
            with open(f"/proc/{process}/stat", encoding="ascii", errors="replace") as file:  # noqa: PTH123  # one line of /proc
                state, *numbers = file.read().rpartition(")")[2].split()
        except OSError:  # it has ended, or this is not Linux
            continue
        is_ready |= state in NOT_ITS_FAULT
        # utime, stime, and for the first those of the children that have ended: see proc_pid_stat(5)
        used += sum(map(int, numbers[10 : 14 if process == pid else 12])) / os.sysconf("SC_CLK_TCK")
    return used, is_ready


def descendants(pid: int) -> list[int]:
    """The children of ``pid``, and theirs, as Linux lists them; none elsewhere."""
    found = children(pid)
    for child in found:
        found += children(child)
    return found


def children(pid: int) -> list[int]:
    """The direct children of ``pid``, as Linux lists them; none elsewhere."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:  # noqa: PTH123  # one line of /proc
            return [int(child) for child in file.read().split()]
    except OSError:
        return []
