"""Forked children that report: what one says arrives as it says it, and one that dies takes no one along.

Forked, because torch takes seconds to import and the parent has it already. The parent must not have started CUDA.
"""

from __future__ import annotations

import math
import multiprocessing
import signal
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

MOST_WORDS = 200  # characters of a line of an error
CONTEXT = multiprocessing.get_context("fork")


@dataclass(frozen=True)
class Job:
    """``function(connection, *arguments)`` runs in its own child; what it sends are the child's messages."""

    name: str
    function: Callable[..., object]
    arguments: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Ended:
    """A child's last message. ``fault`` says what went wrong; it is empty when the function returned."""

    fault: str


class Child:
    """One running job. It may be ``told`` something, and is killed when it was silent past its ``deadline``."""

    def __init__(self, job: Job, patience: float) -> None:
        self.job = job
        self.patience = patience
        self.fault = ""
        self.connection, far_end = CONTEXT.Pipe()
        self.process = CONTEXT.Process(target=_run, args=(job, far_end), daemon=True)
        self.process.start()
        far_end.close()
        self.heard()

    def heard(self) -> None:
        """Give it all its patience again."""
        self.deadline = time.monotonic() + self.patience

    def tell(self, message: object) -> None:
        """Send it ``message``; from now on it may be silent for as long as its patience is."""
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

    def kill(self) -> Ended:
        """End it now."""
        self.process.kill()
        self.fault = self.fault or f"killed after {self.patience:.0f} s of silence"
        return self.end()


def messages(jobs: Iterable[Job], *, at_once: int, patience: float) -> Iterator[tuple[Child, Any]]:
    """Run ``jobs``, ``at_once`` at a time; yield (child, message) as messages come, and (child, Ended) as its last.

    A child that says nothing for ``patience`` seconds is killed.
    """
    waiting = deque(jobs)
    running: list[Child] = []
    while waiting or running:
        while waiting and len(running) < at_once:
            running.append(Child(waiting.popleft(), patience))
        for child in _ready(running):
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
        for child in [child for child in running if time.monotonic() > child.deadline]:
            running.remove(child)
            yield child, child.kill()


PREPARED = "prepared"  # what a child says when it waits for its turn


def in_turn(jobs: Iterable[Job], *, patience: float) -> Iterator[tuple[Child, Any]]:
    """Run all jobs at once until each is prepared; then give each its turn.

    Compiling keeps CPUs busy, and timing needs the GPU alone. Yields what :func:`messages` does, without "prepared".
    """
    jobs = list(jobs)
    preparing, prepared = {job.name for job in jobs}, deque[Child]()
    timing: Child | None = None
    for child, message in messages(jobs, at_once=len(jobs), patience=patience):
        if message == PREPARED:
            preparing.discard(child.job.name)
            prepared.append(child)
            child.deadline = math.inf  # it waits for its turn
        else:
            if isinstance(message, Ended):
                preparing.discard(child.job.name)
                if child in prepared:
                    prepared.remove(child)
                timing = None if timing is child else timing
            yield child, message
        if not preparing and prepared and timing is None:
            timing = prepared.popleft()
            timing.tell("your turn")


def _ready(running: list[Child]) -> list[Child]:
    """Those that have something to say, as soon as there is one; none when a deadline passes first."""
    patience = min(child.deadline for child in running) - time.monotonic()
    ready = wait([child.connection for child in running], timeout=max(0.0, min(patience, 3600.0)))
    return [child for child in running if child.connection in ready]


def _run(job: Job, connection: Connection) -> None:
    try:
        job.function(connection, *job.arguments)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is this child's last message
        connection.send(Ended(summary(error)))
        traceback.print_exc()


def summary(error: BaseException) -> str:
    """The error's type, and of what it says the first line and the last: compilers give the reason at the end."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or ["without a word"]
    ends = lines if len(lines) == 1 else [lines[0], lines[-1]]
    return " ... ".join(line[:MOST_WORDS] for line in (f"{type(error).__name__}: {ends[0]}", *ends[1:]))
