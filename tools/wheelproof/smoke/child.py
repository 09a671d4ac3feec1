"""Runs the suite in its own process, and gives back its report and its last words; nothing of it outlives the run.

This process imports neither torch nor triton nor kernels_smoke: whatever they do to a process, they do it to the child.
"""

import contextlib
import os
import shutil
import signal
import sys
import termios
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from wheel_checks.errors import SourceError
from wheel_checks.process import StartError, run
from wheel_checks.sources.regular_file import read_start
from wheel_checks.sources.scratch_folder import scratch_folder
from wheelproof.kernels import BOOTSTRAP, MODULE, package_folder

GRACE = 5.0  # seconds that an interrupted suite has to end its own children
LAST_WORDS = 4000  # characters
LARGEST_REPORT = 64 << 20  # bytes


@dataclass(frozen=True, slots=True)
class SuiteEnd:
    """How the suite ended. ``status`` is its exit code, or the negative number of the signal that killed it.

    ``report`` is what it wrote, None when it wrote nothing; ``words`` the end of what it said. ``stopped_by`` is the
    signal that interrupted this process meanwhile, 0 for none.
    """

    status: int
    words: str
    report: bytes | None
    timed_out: bool = False
    stopped_by: int = 0


def run_suite(python: str, options: Sequence[str], *, deadline: float, quiet: bool = False) -> SuiteEnd:
    """Run the suite with ``options`` under the interpreter ``python``, for at most ``deadline`` seconds.

    What it says on the way is shown on standard error when that is a terminal, unless ``quiet``. Raises SourceError
    when it cannot be started. When this process is interrupted (SIGINT, SIGTERM), everything that the suite has started
    is ended first, and its report so far comes back; the interrupt is raised again where none exists.
    """
    with scratch_folder() as folder, _words(quiet=quiet) as words:
        output = folder / "report.json"
        command = [python, "-c", BOOTSTRAP, str(package_folder()), MODULE, *options]
        try:
            ended = run(
                [*command, "--format", "json", "--output", str(output)],
                deadline=deadline,
                cwd="/",  # in the current folder, which may be anybody's, Python would find modules
                stdout=words.writing,
                stderr=words.writing,
                sinks={words.reading: words.take},
                first=signal.SIGINT,
                grace=GRACE,
            )
        except StartError as error:
            raise SourceError(f"{python} cannot be started: {error}", hint="see --python") from error
        except (KeyboardInterrupt, SystemExit) as interrupt:
            if not output.exists():
                raise
            number = signal.SIGINT if isinstance(interrupt, KeyboardInterrupt) else signal.SIGTERM
            return SuiteEnd(128 + number, words.last, read_start(output, LARGEST_REPORT + 1), stopped_by=number)
        report = None
        if output.exists():
            report = read_start(output, LARGEST_REPORT + 1)
        return SuiteEnd(ended.status, words.last, report, ended.timed_out)


@dataclass
class _Words:
    """What the suite says. ``writing`` is its end of a pipe, or of a terminal when there is one to show it on."""

    reading: int
    writing: int
    screen: BinaryIO | None
    said: bytes = b""

    def take(self, chunk: bytes) -> None:
        """Keep what the suite said, and show it."""
        self.said = (self.said + chunk)[-4 * LAST_WORDS :]
        if self.screen is not None:
            with contextlib.suppress(OSError):  # the terminal has gone; the work continues
                self.screen.write(chunk)
                self.screen.flush()

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
