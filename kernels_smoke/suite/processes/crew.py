"""The parent's side of the foreman: starts it, hands it jobs, and follows each job to its end. Needs no torch."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any

from kernels_smoke.suite import start
from kernels_smoke.suite.processes.silence import TICK, Silence, children

IMPORT_TIMEOUT = 120.0  # seconds: torch was imported in 3.4 on a fresh machine; a cold network file system takes longer
MARGIN = 15.0  # seconds in which the foreman must have said that it is alive: it does so every half second


class ForemanError(Exception):
    """The foreman died or hung; the message says how, with its last words."""


@dataclass(frozen=True)
class End:
    """How a child ended: ``status`` is its exit code or its negative signal number."""

    status: int
    hang: bool
    words: str

    @property
    def clean(self) -> bool:
        """True when the task returned."""
        return self.status == 0 and not self.hang

    def describe(self) -> str:
        """The failure of a child, in a few words."""
        if self.hang:
            return "nothing came from it any more, and it was killed"
        if self.status < 0:
            with contextlib.suppress(ValueError):
                return f"it was killed by {signal.Signals(-self.status).name}"
            return f"it was killed by signal {-self.status}"
        return f"it ended with exit code {self.status}"


@dataclass
class Job:
    """One task, a callback for its records, and one for its end, which returns the following jobs.

    Its child hangs when it is silent while it sleeps for ``timeout`` seconds, or computes for ``computing`` times as
    many. On a GPU that is once: who waits for a GPU may do so in a loop. ``environment`` are variables of the child
    alone. Of the jobs of a ``lane`` (a GPU) a crew may run a limited number at a time.
    """

    task: str
    arguments: dict[str, Any]
    timeout: float
    on_record: Callable[[dict[str, Any]], None]
    on_end: Callable[[End], Iterable[Job]] = lambda _end: ()
    computing: float = 1.0
    environment: dict[str, str] = field(default_factory=dict)
    lane: str = ""


@dataclass
class Crew:
    """A running foreman. Use it as a context manager: everything that it started is gone at the end.

    All timeouts are multiplied by ``slowness``: emulation is twenty times slower.
    """

    environment: dict[str, str]
    slowness: float = 1.0
    tick: Callable[[], None] = lambda: None  # called at least every half second while jobs run
    ready: dict[str, Any] = field(default_factory=dict)
    own: list[dict[str, Any]] = field(default_factory=list)  # kernels from outside, which each task is to know

    def __enter__(self) -> Crew:
        self._words = tempfile.TemporaryFile()  # closed in __exit__
        self._process = subprocess.Popen(
            start.command("suite.processes.foreman"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            env=self.environment,
            start_new_session=True,
        )
        assert self._process.stdin is not None  # noqa: S101  # it was asked for two lines above
        assert self._process.stdout is not None  # noqa: S101  # likewise
        self._tasks, self._events = self._process.stdin, self._process.stdout
        os.set_blocking(self._events.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._events, selectors.EVENT_READ)
        self._buffer = b""
        self._silence = Silence(self._process.pid)
        self._arrived: deque[dict[str, Any]] = deque()
        self._count = 0
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with contextlib.suppress(OSError):
            self._tasks.close()
        self._kill()  # at once: taking torch down in good order takes half a second, and serves no one
        self._events.close()
        self._selector.close()
        self._words.close()

    def wait_until_ready(self) -> dict[str, Any]:
        """The modules that the foreman imported. Raises ForemanError if it dies, or an import hangs."""
        if not self.ready:
            self.ready = self._next(IMPORT_TIMEOUT * self.slowness, "torch and triton could not be imported")
        return self.ready

    def run(self, jobs: Iterable[Job], *, at_once: int, in_lane: int = 0) -> None:
        """Run ``jobs``, and the jobs that their ends call for, ``at_once`` at a time. Raises ForemanError.

        ``in_lane`` limits the jobs of the same lane at once; jobs without a lane are not limited.
        """
        waiting = deque(jobs)
        running: dict[int, Job] = {}
        while waiting or running:
            while len(running) < at_once and (job := next_job(waiting, running.values(), in_lane)):
                running[self._submit(job)] = job
            event = self._next(MARGIN * self.slowness, "the suite stands still")
            job = running[event["id"]]
            if event["event"] == "record":
                job.on_record(event["record"])
                continue
            del running[event["id"]]
            end = End(event["status"], event["hang"], event["words"].strip())
            waiting.extendleft(following if following.lane else _where(job, following) for following in job.on_end(end))

    def _submit(self, job: Job) -> int:
        self._count += 1
        order = {"id": self._count, "task": job.task, "arguments": job.arguments, "own": self.own}
        order |= {"timeout": job.timeout * self.slowness, "computing": job.computing, "environment": job.environment}
        try:
            self._tasks.write(json.dumps(order).encode() + b"\n")
            self._tasks.flush()
        except OSError as error:
            raise ForemanError(self._obituary("the suite's process is gone")) from error
        return self._count

    def _next(self, timeout: float, what: str) -> dict[str, Any]:
        self._silence.heard()
        self.tick()
        while not self._arrived:
            self.tick()
            if not self._selector.select(timeout=TICK):
                self._silence.look()
                if self._silence.exceeds(timeout):
                    raise ForemanError(self._obituary(f"{what}: nothing was heard for {timeout:.0f} s"))
                continue
            self._silence.heard()
            chunk = os.read(self._events.fileno(), 1 << 16)
            if not chunk:
                raise ForemanError(self._obituary(what))
            *lines, self._buffer = (self._buffer + chunk).split(b"\n")
            events = map(json.loads, lines)
            self._arrived.extend(event for event in events if event["event"] != "alive")
        return self._arrived.popleft()

    def _obituary(self, what: str) -> str:
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=1)
        status = self._process.poll()
        how = "" if status is None else f"; {End(status, False, '').describe()}"
        self._words.seek(0)
        words = self._words.read().decode(errors="replace").strip()[-2000:]
        return f"{what}{how}" + (f". Its last words:\n{words}" if words else "")

    def _kill(self) -> None:
        """Kill the foreman and its children, each of which leads its own group."""
        for group in [*children(self._process.pid), self._process.pid]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=5)


def _where(job: Job, following: Job) -> Job:
    """``following`` in place of ``job``: jobs that continue after a dead child stay on its GPU."""
    return replace(following, environment=job.environment, lane=job.lane)


def next_job(waiting: deque[Job], running: Iterable[Job], in_lane: int) -> Job | None:
    """Take the first of the ``waiting`` jobs in whose lane less than ``in_lane`` are ``running``; 0 is no limit."""
    taken = [job.lane for job in running]
    for place, job in enumerate(waiting):
        if not (in_lane and job.lane) or taken.count(job.lane) < in_lane:
            del waiting[place]
            return job
    return None
