"""Runs the suite in a process of its own, and gives back its report and its last words; nothing of it outlives the run.

This process imports neither torch nor triton nor kernels_smoke: whatever they do to a process, they do it to the child.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import termios
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import BinaryIO, NoReturn

from wheel_checks.errors import SourceError
from wheelproof.kernels import BOOTSTRAP, MODULE, package_folder

GRACE = 5.0  # seconds that an interrupted suite has to end its own children
LAST_WORDS = 4000  # characters
LARGEST_REPORT = 64 << 20  # bytes
_TICK = 0.2  # seconds between two looks at a process that says nothing


@dataclass(frozen=True, slots=True)
class Ended:
    """How the suite ended. ``status`` is its exit code, or the negative number of the signal that killed it.

    ``report`` is what it wrote, None when it wrote nothing; ``words`` the end of what it said.
    """

    status: int
    words: str
    report: bytes | None
    timed_out: bool = False


def run_suite(python: str, options: Sequence[str], *, deadline: float, quiet: bool = False) -> Ended:
    """Run the suite with ``options`` under the interpreter ``python``, for at most ``deadline`` seconds.

    What it says on the way is shown on standard error when that is a terminal, unless ``quiet``. Raises SourceError
    when it cannot be started. When this process is interrupted, everything that the suite has started is ended first.
    """
    with tempfile.TemporaryDirectory(prefix="wheelproof-") as folder, _words(quiet=quiet) as words:
        output = Path(folder, "report.json")
        command = [python, "-c", BOOTSTRAP, str(package_folder()), MODULE, *options]
        with _terminated_as_interrupted():
            try:
                process = subprocess.Popen(
                    [*command, "--format", "json", "--output", str(output)],
                    stdin=subprocess.DEVNULL,
                    stdout=words.writing,
                    stderr=words.writing,
                    start_new_session=True,
                )
            except OSError as error:
                raise SourceError(f"{python} cannot be started: {error.strerror}", hint="see --python") from error
            try:
                in_time = words.follow(process, time.monotonic() + deadline)
            finally:
                _end(process)
        report = None
        if output.exists():
            with output.open("rb") as file:
                report = file.read(LARGEST_REPORT + 1)
        return Ended(process.returncode, words.last, report, timed_out=not in_time)


@dataclass
class _Words:
    """What the suite says. ``writing`` is its end of a pipe, or of a terminal when there is one to show it on."""

    reading: int
    writing: int
    screen: BinaryIO | None
    said: bytes = b""

    def follow(self, process: subprocess.Popen[bytes], end: float) -> bool:
        """Read until the process has ended; False when that did not happen before ``end``."""
        with selectors.DefaultSelector() as selector:
            selector.register(self.reading, selectors.EVENT_READ)
            while process.poll() is None:
                if time.monotonic() >= end:
                    return False
                if selector.select(_TICK):
                    self._read()
            while selector.select(0) and self._read():
                pass
        return True

    def _read(self) -> bool:
        try:
            chunk = os.read(self.reading, 1 << 16)
        except OSError:  # what a terminal gives when nobody has it open any more
            return False
        self.said = (self.said + chunk)[-4 * LAST_WORDS :]
        if self.screen is not None:
            with contextlib.suppress(OSError):  # the terminal has gone; the work goes on
                self.screen.write(chunk)
                self.screen.flush()
        return bool(chunk)

    @property
    def last(self) -> str:
        """The end of what was said, without what a progress display has drawn over."""
        lines = self.said.decode(errors="replace").split("\n")
        kept = (line.rstrip("\r").rpartition("\r")[2].replace("\x1b[K", "") for line in lines)
        return "\n".join(kept).strip()[-LAST_WORDS:]


@contextlib.contextmanager
def _words(*, quiet: bool) -> Iterator[_Words]:
    shown = not quiet and sys.stderr is not None and sys.stderr.isatty()
    reading, writing = os.openpty() if shown else os.pipe()
    if shown:
        size = shutil.get_terminal_size()
        termios.tcsetwinsize(writing, (size.lines, size.columns))
    try:
        yield _Words(reading, writing, sys.stderr.buffer if shown else None)
    finally:
        os.close(reading)
        os.close(writing)
        if shown:
            sys.stderr.write("\r\x1b[K")  # the report starts on an empty line
            sys.stderr.flush()


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process if it is still there: it may clean up, then it and all that it started are killed."""
    if process.poll() is not None:
        return
    family = _family(process.pid)
    with contextlib.suppress(ProcessLookupError):
        process.send_signal(signal.SIGINT)
    try:
        process.wait(GRACE)
    except subprocess.TimeoutExpired:
        family = {*family, *_family(process.pid)}
    finally:
        for pid in family:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        process.wait()


def _family(pid: int) -> set[int]:
    """``pid`` and all processes below it, as Linux tells them: those that lead sessions of their own, too."""
    found = {pid}
    try:
        below = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
    except OSError:
        below = []
    return found.union(*(_family(int(child)) for child in below))


@contextlib.contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """While this is active, SIGTERM leaves by way of every ``finally``: a cancelled job leaves nothing behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(number: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
