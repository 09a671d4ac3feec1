"""Dangerous steps run in children: whatever a driver or a broken library does to a process, it does it to the child.

A child that hangs or crashes is an answer, not a failure of the doctor: :class:`ChildEnd` says how it ended.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from wheel_checks.facts.host.probes import ChildEnd
from wheel_checks.model import Unavailable

TIME_IS_OVER = Unavailable("the time of --timeout was over")
LARGEST_OUTPUT = 1 << 20  # bytes
LAST_LINES = 20
_LAST_BYTES = 8 << 10
_TICK = 0.1  # seconds between two looks at a child that says nothing
_GRACE = 0.5  # seconds that a killed child has to end; one in an uninterruptible wait does not
_FULL_PIPES = 32  # reads that empty any pipe
_MOST_THREADS = 256  # whose state is looked at

_running: set[int] = set()
_starting: set[int] = set()  # the threads that start a child now: it is not among those that run yet
_lock = threading.Lock()


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
    cwd: str | None = None,
    limit: int = LARGEST_OUTPUT,
) -> tuple[ChildEnd, bytes]:
    """Run ``command`` for at most ``deadline`` seconds: how it ended, and the first ``limit`` bytes of its output.

    It leads a session of its own, and all that is left of its process group is killed when it ends or the deadline
    passes. A child that even SIGKILL does not end (it waits inside the kernel) is left behind and reaped by a thread.
    One that cannot be started ended with exit code 127, and ``output`` says why. Never raises.
    """
    started = time.monotonic()
    _starting.add(threading.get_ident())
    try:
        process = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a null byte in the command or the environment
        _starting.discard(threading.get_ident())
        return ChildEnd(exit_code=127, output=f"{command[0]} cannot be started: {error}"), b""
    with _lock:
        _running.add(process.pid)
        _starting.discard(threading.get_ident())
    pipes = _Pipes(process, limit)
    waits_in = ""
    try:
        in_time = pipes.read_until(started + deadline)
        if not in_time:
            waits_in = _waits_in(process.pid)
    finally:
        _end(process)
        pipes.close()
    code = process.returncode if process.returncode is not None else -signal.SIGKILL
    end = ChildEnd(
        exit_code=code,
        signal=_signal_name(-code) if code < 0 and in_time else "",
        hang=not in_time,
        seconds=round(time.monotonic() - started, 3),
        waits_in=waits_in,
        output=pipes.last_words,
    )
    return end, bytes(pipes.output)


def end_all() -> None:
    """Kill all children that run now: for whoever is interrupted while threads of theirs wait in :func:`run_child`.

    One that is just being started is waited for, but not long: what starts it may hang.
    """
    end = time.monotonic() + _GRACE
    while _starting and time.monotonic() < end:
        time.sleep(0.005)
    with _lock:
        for pid in _running:
            _kill_group(pid)


class _Pipes:
    """What a child writes: the beginning of its standard output, the end of its standard error."""

    def __init__(self, process: subprocess.Popen[bytes], limit: int) -> None:
        assert process.stdout is not None  # noqa: S101  # for mypy: Popen was asked for pipes
        assert process.stderr is not None  # noqa: S101
        self._process = process
        self._limit = limit
        self._selector = selectors.DefaultSelector()
        self._selector.register(process.stdout, selectors.EVENT_READ, self._keep_output)
        self._selector.register(process.stderr, selectors.EVENT_READ, self._keep_error)
        self.output = bytearray()
        self._error = b""

    def read_until(self, end: float) -> bool:
        """Read until the child has ended; False when that did not happen before the time ``end``.

        Its pipes do not tell: a child may close them and live on, or leave them open in a child of its own.
        """
        while True:
            self._read(min(_TICK, max(0.0, end - time.monotonic())))
            if _has_ended(self._process.pid):
                for _ in range(_FULL_PIPES):  # a child of its own may still write, and would go on for ever
                    if not self._read(0):
                        break
                return True
            if time.monotonic() >= end:
                return False

    def _read(self, timeout: float) -> bool:
        """Take what is there, and wait for it at most ``timeout`` seconds; False when nothing came."""
        if not self._selector.get_map():
            time.sleep(min(timeout, 0.002))
            return False
        ready = self._selector.select(timeout)
        for key, _ in ready:
            if chunk := os.read(key.fd, 1 << 16):
                key.data(chunk)
            else:
                self._selector.unregister(key.fileobj)
        return bool(ready)

    def _keep_output(self, chunk: bytes) -> None:
        self.output += chunk[: self._limit - len(self.output)]

    def _keep_error(self, chunk: bytes) -> None:
        self._error = (self._error + chunk)[-_LAST_BYTES:]

    @property
    def last_words(self) -> str:
        lines = self._error.decode(errors="replace").splitlines()
        return "\n".join([line.rstrip() for line in lines if line.strip()][-LAST_LINES:])

    def close(self) -> None:
        self._selector.close()
        for pipe in (self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()


def _has_ended(pid: int) -> bool:
    """True for a child that has ended. It is not reaped: until then no other process can have its number."""
    try:
        return os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:  # whoever started us ignores SIGCHLD: the kernel has reaped it
        return True


def _end(process: subprocess.Popen[bytes]) -> None:
    with _lock:
        _kill_group(process.pid)
        _running.discard(process.pid)
    try:
        process.wait(_GRACE)
    except subprocess.TimeoutExpired:
        threading.Thread(target=process.wait, daemon=True).start()


def _kill_group(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:  # a real-time signal
        return f"signal {number}"


def _waits_in(pid: int) -> str:
    """The kernel function in which a thread of ``pid``, or of a child of its own, waits; "" when that is not told.

    A thread in an uninterruptible wait is the one that matters; else it is the process itself.
    """
    waits = [(_state(task), _wait_channel(task)) for task in _tasks(pid)]
    named = [(state, function) for state, function in waits if function]
    return next((function for state, function in named if state == "D"), named[0][1] if named else "")


def _tasks(pid: int) -> list[Path]:
    """The threads of ``pid`` and of all processes below it, as folders of /proc."""
    found: list[Path] = []
    processes = [pid]
    while processes and len(found) < _MOST_THREADS:
        try:
            tasks = sorted(Path(f"/proc/{processes.pop(0)}/task").iterdir(), key=lambda task: int(task.name))
        except OSError:  # it has ended meanwhile
            continue
        found += tasks
        processes += [int(child) for task in tasks for child in _text(task / "children").split()]
    return found[:_MOST_THREADS]


def _state(task: Path) -> str:
    return _text(task / "stat").rpartition(") ")[2][:1]


def _wait_channel(task: Path) -> str:
    function = _text(task / "wchan")
    return "" if function == "0" else function  # it runs, or it is not for us to know


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
