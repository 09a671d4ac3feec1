"""Dangerous steps run in children: whatever a driver or a broken library does to a process, it does it to the child.

A child that hangs or crashes is an answer, not a failure of the doctor: :class:`ChildEnd` says how it ended.
"""

import contextlib
import signal
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wheel_checks.facts.host.probes import ChildEnd
from wheel_checks.model import Unavailable
from wheel_checks.process import StartError, run
from wheel_checks.process_tree import family
from wheel_checks.sources.regular_file import read_start

TIME_IS_OVER = Unavailable("--timeout expired")
LARGEST_OUTPUT = 1 << 20  # bytes
LAST_LINES = 20
NOT_STARTED = 127  # the exit code that stands for a program that cannot be started, as in a shell
_LAST_BYTES = 8 << 10
_MOST_THREADS = 256  # whose state is inspected


@dataclass(frozen=True, slots=True)
class Budget:
    """The time that is left for everything: made once, handed down to every step; none any more after ``end()``."""

    seconds: float
    started: float = field(default_factory=time.monotonic)
    _over: threading.Event = field(default_factory=threading.Event, repr=False, compare=False)

    @property
    def left(self) -> float:
        """The seconds that are left, never less than 0."""
        return 0.0 if self._over.is_set() else max(0.0, self.started + self.seconds - time.monotonic())

    def end(self) -> None:
        """Leave no time, so that whatever is begun from now on is over at once."""
        self._over.set()

    def step(self, seconds: float) -> float:
        """What one step may take: ``seconds``, or what is left when that is less."""
        return min(seconds, self.left)


def run_child(
    command: Sequence[str],
    *,
    deadline: float,
    environment: Mapping[str, str],
    cwd: str = "/",
    limit: int = LARGEST_OUTPUT,
) -> tuple[ChildEnd, bytes]:
    """Run ``command`` for at most ``deadline`` seconds: how it ended, and the first ``limit`` bytes of its output.

    It runs in the root folder: in the current one, which may be anybody's, Python and the loader would find what is
    there. One that cannot be started has exit code 127, and ``output`` says why. Never raises.
    """
    waits: list[str] = []
    try:
        ended = run(
            command,
            deadline=deadline,
            environment=environment,
            cwd=cwd,
            limit=limit,
            at_deadline=lambda pid: waits.append(_waits_in(pid)),
        )
    except StartError as error:
        return ChildEnd(exit_code=NOT_STARTED, output=f"{command[0]} cannot be started: {error.__cause__}"), b""
    end = ChildEnd(
        exit_code=ended.status,
        signal=_signal_name(-ended.status) if ended.status < 0 and not ended.timed_out else "",
        hang=ended.timed_out,
        seconds=round(ended.seconds, 3),
        waits_in="".join(waits),
        output=_last_words(ended.errors),
    )
    return end, ended.output


def _last_words(errors: bytes) -> str:
    lines = errors[-_LAST_BYTES:].decode(errors="replace").splitlines()
    return "\n".join([line.rstrip() for line in lines if line.strip()][-LAST_LINES:])


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _waits_in(pid: int) -> str:
    """The kernel function in which a thread of ``pid``, or of its own child, waits; "" when that is unknown.

    A thread in an uninterruptible wait is the one that matters; else it is the process itself.
    """
    waits = [(_state(task), _wait_channel(task)) for task in _tasks(pid)]
    named = [(state, function) for state, function in waits if function]
    return next((function for state, function in named if state == "D"), named[0][1] if named else "")


def _tasks(pid: int) -> list[Path]:
    """The threads of ``pid`` and of all processes below it, as folders of /proc."""
    found: list[Path] = []
    for process in family(pid):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            found += sorted(Path(f"/proc/{process}/task").iterdir(), key=lambda task: int(task.name))
    return found[:_MOST_THREADS]


def _state(task: Path) -> str:
    return _text(task / "stat").rpartition(") ")[2][:1]


def _wait_channel(task: Path) -> str:
    function = _text(task / "wchan")
    return "" if function == "0" else function  # it runs, or it is not for us to know


def _text(path: Path) -> str:
    try:
        return read_start(path, LARGEST_OUTPUT).decode(errors="replace").strip()
    except OSError:
        return ""
