"""Forked children that report: messages arrive at once, and the death of one does not affect others.

Forked, because torch takes seconds to import and the parent has it already. The parent must not have started CUDA.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from kernels_smoke.suite.processes.foreman import end_with_parent

MOST_WORDS = 200  # characters of a line of an error
CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Job:
    """``function(connection, *arguments)`` runs in its own child; it sends the child's messages."""

    name: str
    function: Callable[..., object]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Ended:
    """A child's last message. ``fault`` describes the error; "" if the function returned."""

    fault: str


class Child:
    """One running job. It may be ``told`` something, and is killed when it was silent past its ``deadline``."""

    def __init__(self, job: Job, timeout: float) -> None:
        self.job = job
        self.timeout = timeout
        self.fault = ""
        self.connection, far_end = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=_run, args=(job, far_end), daemon=True)
        self.process.start()
        far_end.close()
        self.heard()

    def heard(self) -> None:
        """Restart its timeout."""
        self.deadline = time.monotonic() + self.timeout

    def tell(self, message: object) -> None:
        """Send it ``message``; its timeout starts now."""
        self.heard()
        try:
            self.connection.send(message)
        except OSError:
            self.fault = self.fault or "it was gone before it was asked to continue"

    def end(self) -> Ended:
        """Wait for its process, which has closed its end of the pipe, and say how it ended."""
        self.process.join(timeout=10)
        status = self.process.exitcode
        if status is not None and status < 0:
            self.fault = self.fault or f"killed by {signal.Signals(-status).name}"
        elif status != 0:
            self.fault = self.fault or f"ended with exit code {status}"
        self.connection.close()
        return Ended(self.fault)

    def signal(self, number: int) -> None:
        """Send its process a signal, if it is still there."""
        if self.process.pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def kill(self, why: str) -> Ended:
        """End it now."""
        self.process.kill()
        self.fault = self.fault or f"killed {why}"
        return self.end()


def messages(
    jobs: Iterable[Job], *, at_once: int, timeout: float, until: float = math.inf, running: list[Child] | None = None
) -> Iterator[tuple[Child, Any]]:
    """Run ``jobs``, ``at_once`` at a time; yield (child, message) as messages come, and (child, Ended) as its last.

    A child that says nothing for ``timeout`` seconds is killed, and ``until`` then (of ``time.monotonic``) each that
    runs; no other is started. ``running`` shows the caller which children there are.
    """
    waiting = deque(jobs)
    running = [] if running is None else running
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(Child(waiting.popleft(), timeout))
        for child in _ready(running, until):
            try:
                message = child.connection.recv()
            except (EOFError, OSError):
                running.remove(child)
                yield child, child.end()
                continue
            child.heard()
            if isinstance(message, Ended):
                child.fault = message.fault
            else:
                yield child, message
        now = time.monotonic()
        if now > until:
            waiting.clear()
        for child in [child for child in running if now > min(child.deadline, until)]:
            running.remove(child)
            yield child, child.kill("when the time was up" if now > until else f"after {timeout:.0f} s of silence")


TURN, OVER = "turn", "turn over"  # messages of a child before and after timing
DRAINING = 0.1  # seconds in which the GPU finishes earlier launches before a turn


def in_turn(
    jobs: Iterable[Job], *, at_once: int, timeout: float, until: float = math.inf
) -> Iterator[tuple[Child, Any]]:
    """Run ``jobs`` as :func:`messages` does, and let one after the other have its :func:`turn`.

    Compiling keeps CPUs busy, and timing needs the GPU and quiet CPUs: so while one child has its turn, the others are
    stopped. Yields the same as :func:`messages`, and :data:`OVER` after each turn.
    """
    running: list[Child] = []
    timing: Child | None = None
    stopped: list[Child] = []
    asking = deque[Child]()
    for child, message in messages(jobs, at_once=at_once, timeout=timeout, until=until, running=running):
        if message == TURN:
            child.deadline = math.inf  # it waits
            asking.append(child)
        elif child is timing and (message == OVER or isinstance(message, Ended)):
            timing = None
            for other in stopped:
                if other not in asking:
                    other.heard()
                other.signal(signal.SIGCONT)
        if child in asking and isinstance(message, Ended):
            asking.remove(child)
        if message != TURN:
            yield child, message
        if timing is None and asking:
            timing = asking.popleft()
            stopped = [other for other in running if other is not timing]
            for other in stopped:
                other.signal(signal.SIGSTOP)
                other.deadline = math.inf
            timing.tell("your turn")


@contextlib.contextmanager
def turn(connection: Connection) -> Iterator[None]:
    """In a child: wait until all other children are stopped, and let them continue afterwards."""
    connection.send(TURN)
    connection.recv()
    time.sleep(DRAINING)
    try:
        yield
    finally:
        connection.send(OVER)


def _ready(running: list[Child], until: float) -> list[Child]:
    """Those that have something to say, as soon as there is one; none when a deadline passes first."""
    timeout = min(until, *(child.deadline for child in running)) - time.monotonic()
    ready = wait([child.connection for child in running], timeout=max(0.0, min(timeout, 3600.0)))
    return [child for child in running if child.connection in ready]


def _run(job: Job, connection: Connection) -> None:
    end_with_parent()
    try:
        job.function(connection, *job.arguments)
    except Exception as error:  # noqa: BLE001  # any exception is this child's last message
        connection.send(Ended(summary(error)))
        traceback.print_exc()


def summary(error: BaseException) -> str:
    """The error's type, and the first and last lines of its message: compilers give the reason at the end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["without a word"]
    ends = lines if len(lines) == 1 else [lines[0], lines[-1]]
    return " ... ".join(line[:MOST_WORDS] for line in (f"{type(error).__name__}: {ends[0]}", *ends[1:]))
