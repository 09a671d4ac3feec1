"""One way to run a child process: supervised from its start to its end, and nothing of it is left afterwards.

:func:`run` runs a command and says how it ended; :class:`Child` is a child that runs while its lines are read. Each
child leads a session and a process group. Its whole group, and what left the group while it ran, is killed when it
ends, when its deadline passes, when this process is interrupted (SIGINT, SIGTERM), and when this process dies.

For the last one a guard is started with the first child: a shell that reads the groups from a pipe, and signals those
that are left when the pipe closes. PR_SET_PDEATHSIG would do the same in the kernel, but it follows the *thread* that
started the child, and setting it needs ``preexec_fn``, which may deadlock where other threads run.
"""

import atexit
import contextlib
import math
import os
import re
import selectors
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any

from wheel_checks.interrupts import TERMINATED, held_back, terminated_as
from wheel_checks.process_tree import family, start_time

LARGEST_OUTPUT = 64 << 20  # bytes; pip's report of 200 packages, with all their METADATA, has 5 MB

# Where programs, libraries and modules are searched for, and what separates the entries.
_SEARCHED = dict.fromkeys(
    ("PATH", "PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPYCACHEPREFIX", "LD_AUDIT"), ":"
)
_SEARCHED |= {"LD_LIBRARY_PATH": "[:;]", "LD_PRELOAD": r"[:\s]+"}
_TICK = 0.02  # seconds between two looks at a child where the kernel has no file descriptors for processes
_REAPING = 0.5  # seconds that a killed child has to end; one in an uninterruptible wait does not
_FULL_PIPES = 32  # reads that empty any pipe

Sink = Callable[[bytes], object]
"""Takes the next bytes that a child wrote."""


def without_relative(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables without the relative and empty entries of search paths: they name another folder in every tree."""
    kept = {}
    for name, value in variables.items():
        entries = re.split(_SEARCHED[name], value) if name in _SEARCHED else []
        # A preloaded library without a slash is searched for, as any other.
        good = [entry for entry in entries if entry[:1] == "/" or ("PRELOAD" in name and entry and "/" not in entry)]
        if name not in _SEARCHED or len(good) == len(entries):
            kept[name] = value
        elif good:
            kept[name] = ":".join(good)
    return kept


def find_program(name: str, variables: Mapping[str, str]) -> str | None:
    """The program with this name, or at this path, by the search path without its relative entries; else None."""
    path = variables.get("PATH", os.defpath)
    return shutil.which(name, path=without_relative({"PATH": path}).get("PATH", ""))


class StartError(Exception):
    """A program cannot be started; ``reason`` says why."""

    def __init__(self, error: OSError | ValueError) -> None:
        self.reason: str = getattr(error, "strerror", None) or str(error)
        super().__init__(self.reason)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a child ended. ``status`` is its exit code, or the negative number of the signal that ended it.

    ``output`` is the beginning of its standard output, ``errors`` the end of its standard error.
    """

    status: int
    seconds: float
    timed_out: bool = False
    output: bytes = b""
    errors: bytes = b""


def run(
    command: Sequence[str],
    *,
    deadline: float = math.inf,
    environment: Mapping[str, str] | None = None,
    cwd: str | None = None,
    limit: int = LARGEST_OUTPUT,
    stdout: int | IO[Any] | None = subprocess.PIPE,
    stderr: int | IO[Any] | None = subprocess.PIPE,
    sinks: Mapping[int, Sink] | None = None,
    at_deadline: Callable[[int], object] | None = None,
    first: int = signal.SIGKILL,
    grace: float = 0.0,
) -> Ended:
    """Run ``command`` for at most ``deadline`` seconds, with empty standard input.

    Of standard output the first ``limit`` bytes are kept, of standard error the last. ``stdout`` and ``stderr`` are as
    for ``subprocess``. ``sinks`` take what is written instead: 1 and 2 are standard output and standard error, other
    numbers are open descriptors of the caller, which are read meanwhile. ``at_deadline`` is called with the number of
    a child that is too slow, while it still runs. Such a child, and one that runs when this process is interrupted,
    gets the signal ``first`` and has ``grace`` seconds until it is killed.

    A child that even SIGKILL does not end (it waits inside the kernel) is left behind, with status -9, and reaped by
    a thread. Raises StartError, and what a sink raises. SIGTERM raises SystemExit here.
    """
    started = time.monotonic()
    output, errors = bytearray(), bytearray()

    def keep_first(chunk: bytes) -> None:
        output.extend(chunk[: limit - len(output)])

    def keep_last(chunk: bytes) -> None:
        errors.extend(chunk)
        del errors[: max(0, len(errors) - limit)]

    with terminated_as(SystemExit(TERMINATED)):
        child = Child(command, environment=environment, cwd=cwd, stdout=stdout, stderr=stderr, first=first, grace=grace)
        try:
            in_time = child.follow({1: keep_first, 2: keep_last, **(sinks or {})}, started + deadline)
            if not in_time and at_deadline is not None:
                at_deadline(child.pid)
        finally:
            child.end()
    return Ended(child.status, time.monotonic() - started, not in_time, bytes(output), bytes(errors))


class Child:
    """A child that runs. Whoever makes one calls :meth:`end` in the end, whatever happens.

    ``stdin`` is what it reads from standard input, ``pass_fds`` are descriptors that it inherits. ``first`` is the
    signal that asks it to end, ``grace`` the seconds that it then has until it is killed. Raises StartError.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: bytes = b"",
        stdout: int | IO[Any] | None = subprocess.PIPE,
        stderr: int | IO[Any] | None = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
        first: int = signal.SIGKILL,
        grace: float = 0.0,
    ) -> None:
        self.first, self._grace = first, grace
        self._read_from: Sequence[int] = (1, 2)
        self._line = b""
        self.pid = 0  # until it has started
        try:
            with held_back(), contextlib.ExitStack() as leaving:
                _ours.starting.add(threading.get_ident())
                leaving.callback(_ours.starting.discard, threading.get_ident())
                self._process = subprocess.Popen(
                    list(command),
                    env=without_relative(os.environ if environment is None else environment),
                    cwd=cwd,
                    stdin=leaving.enter_context(_file_of(stdin)) if stdin else subprocess.DEVNULL,
                    stdout=stdout,
                    stderr=stderr,
                    pass_fds=tuple(pass_fds),
                    start_new_session=True,
                )
                self.pid = self._process.pid
                _ours.add(self)
        except (OSError, ValueError) as error:  # ValueError: a null byte in the command or the environment
            raise StartError(error) from error
        except BaseException:  # an interrupt that was held back
            if self.pid:
                self.end()
            raise

    @property
    def status(self) -> int:
        """Its exit code, or a negative signal; -9 for one that has not ended, which even SIGKILL did not end."""
        return -signal.SIGKILL if self._process.returncode is None else self._process.returncode

    @property
    def has_ended(self) -> bool:
        """True when it has ended. It is not reaped before :meth:`end`: no other process has its number until then."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # whoever started us ignores SIGCHLD: the kernel has reaped it
            return True

    def fileno(self) -> int:
        """The descriptor of its standard output, for a selector."""
        assert self._process.stdout is not None  # noqa: S101  # for mypy: it has a pipe
        return self._process.stdout.fileno()

    def lines(self) -> list[str] | None:
        """The lines of standard output that are complete by now; waits for something to read. None after the last."""
        chunk = os.read(self.fileno(), 1 << 16)
        *lines, self._line = (self._line + chunk).split(b"\n")
        return [line.decode(errors="replace") for line in lines] if chunk else None

    def follow(self, sinks: Mapping[int, Sink], until: float) -> bool:
        """Feed the sinks until it has ended, as :func:`run` does; False when that did not happen before ``until``.

        Its pipes do not say that it ended: a child may close them and live on, or leave them open in a grandchild.
        """
        self._read_from = tuple(sinks)
        pipes = {1: self._process.stdout, 2: self._process.stderr}
        with _Reading(self.pid) as reading:
            for number, sink in sinks.items():
                pipe = pipes.get(number, number)
                if pipe is not None:
                    reading.register(pipe, selectors.EVENT_READ, sink)
            while not self.has_ended:
                if time.monotonic() >= until:
                    return False
                reading.read(until - time.monotonic())
            for _ in range(_FULL_PIPES):  # a grandchild may still write, and might never stop
                if not reading.read(0):
                    break
            return True

    def send(self, number: int) -> None:
        """Send a signal to its process group, if there still is one."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def end(self) -> None:
        """Ask it to end, if it has any time for that; then kill what is left of it, reap it, and close its pipes."""
        strays: dict[int, str] = {}
        try:
            if not self.has_ended:
                strays |= family(self.pid)
                if self._grace:
                    self.send(self.first)
                    if not self.follow(dict.fromkeys(self._read_from, len), time.monotonic() + self._grace):
                        strays |= family(self.pid)
        finally:
            _ours.kill(self, strays)
            for pipe in (self._process.stdout, self._process.stderr):
                if pipe is not None:
                    pipe.close()
            try:
                self._process.wait(_REAPING)
            except subprocess.TimeoutExpired:
                threading.Thread(target=self._process.wait, daemon=True).start()


class _Reading(selectors.DefaultSelector):
    """Reads what is there. It also wakes up when the process ``pid`` ends."""

    def __init__(self, pid: int) -> None:
        super().__init__()
        self._longest = math.inf
        self._process = -1
        try:
            self._process = os.pidfd_open(pid)
            self.register(self._process, selectors.EVENT_READ)
        except (AttributeError, OSError):  # not Linux, an old one, or a sandbox that forbids it
            self._longest = _TICK

    def read(self, timeout: float) -> bool:
        """Take what is there, and wait for it at most ``timeout`` seconds; False when nothing came."""
        seconds = min(max(0.0, timeout), self._longest)
        came = False
        for key, _ in self.select(None if seconds == math.inf else seconds):
            if key.data is None:
                continue
            try:
                chunk = os.read(key.fd, 1 << 16)
            except OSError:  # what a terminal gives when no process has it open any more
                chunk = b""
            if chunk:
                key.data(chunk)
                came = True
            else:
                self.unregister(key.fileobj)
        return came

    def close(self) -> None:
        super().close()
        if self._process >= 0:
            os.close(self._process)


class _Running:
    """The children that run, and the guard: a shell that signals the groups that are left when this process has died.

    It leads its own session. Where there is no shell, children outlive a process that is killed by SIGKILL.
    """

    # Each line names all groups that there are: "9:4711 15:4712".
    GUARD = """
    while read -r line; do groups=$line; done
    for group in $groups; do kill -"${group%:*}" -"${group#*:}"; done
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.children: dict[int, Child] = {}
        self.starting: set[int] = set()  # the threads that start a child now: it is not among those that run yet
        self._pipe = -1

    def add(self, child: Child) -> None:
        """Have the guard watch over this one, too."""
        with self.lock:
            if self._pipe < 0:
                with contextlib.suppress(OSError):
                    self._start_guard()
            self.children[child.pid] = child
            self._announce()

    def kill(self, child: Child, strays: Mapping[int, str]) -> None:
        """Kill the group of a child, and what is left of the family ``strays``.

        The guard forgets it, since its number may soon be that of another process.
        """
        with self.lock:
            child.send(signal.SIGKILL)
            for pid, started in strays.items():
                if pid != child.pid and start_time(pid) == started:
                    with contextlib.suppress(ProcessLookupError, PermissionError):
                        os.kill(pid, signal.SIGKILL)
            self.children.pop(child.pid, None)
            self._announce()

    def _announce(self) -> None:
        line = " ".join(f"{child.first:d}:{pid}" for pid, child in self.children.items())
        with contextlib.suppress(OSError):
            os.write(self._pipe, f"{line}\n".encode())

    def _start_guard(self) -> None:
        reading, writing = os.pipe()
        try:
            guard = subprocess.Popen(
                ["/bin/sh", "-c", self.GUARD],
                stdin=reading,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env={},  # what the user loads into programs (LD_PRELOAD) is for others
                start_new_session=True,
            )
        except OSError:
            os.close(writing)
            raise
        finally:
            os.close(reading)
        os.set_blocking(writing, False)
        self._pipe = writing
        atexit.register(self._dismiss, guard, os.getpid())

    def leave_to_the_parent(self) -> None:
        """Let go of the guard in a fork, or it would wait for the fork to end, too."""
        if self._pipe >= 0:
            os.close(self._pipe)

    def _dismiss(self, guard: subprocess.Popen[bytes], owner: int) -> None:
        if owner == os.getpid():  # not in a fork
            os.close(self._pipe)
            with contextlib.suppress(subprocess.TimeoutExpired):
                guard.wait(_REAPING)


_ours = _Running()


def _start_over() -> None:
    global _ours  # noqa: PLW0603  # what a fork inherits belongs to the process that forked it
    _ours.leave_to_the_parent()
    _ours = _Running()


os.register_at_fork(after_in_child=_start_over)


def end_all() -> None:
    """Kill all children that run now: for whoever is interrupted while their threads wait in :func:`run`.

    One that is just being started is waited for, but not long: what starts it may hang.
    """
    end = time.monotonic() + _REAPING
    while _ours.starting and time.monotonic() < end:
        time.sleep(0.005)
    with _ours.lock:
        for child in _ours.children.values():
            child.send(signal.SIGKILL)


def _file_of(data: bytes) -> IO[bytes]:
    file = tempfile.TemporaryFile()  # noqa: SIM115  # the caller closes it
    file.write(data)
    file.seek(0)
    return file
