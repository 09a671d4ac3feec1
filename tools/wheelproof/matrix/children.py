"""Commands in child processes: nothing of them is left when they end, when their time is over, or when we are ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from wheel_checks.errors import SourceError
from wheelproof.matrix.executors.base import Ended

NOT_STARTED = 127  # what a shell gives for a command that it does not find
_PR_SET_PDEATHSIG = 1  # linux/prctl.h


def run_command(
    command: Sequence[str], *, environ: Mapping[str, str], output: Path, log: Path, deadline: float
) -> Ended:
    """Run ``command`` for at most ``deadline`` seconds, then kill it and all of its process group.

    Standard output goes to ``output``, standard error is appended to ``log``. It is also killed when this process dies.
    Raises SourceError when it cannot be started, or a file cannot be written.
    """
    started = time.monotonic()
    try:
        with output.open("wb") as out, log.open("ab") as err:
            process = subprocess.Popen(
                list(command),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                env=dict(environ),
                start_new_session=True,
                preexec_fn=_die_with_parent,  # noqa: PLW1509  # a call of the kernel alone, and no thread is here
            )
    except OSError as error:
        raise SourceError(f"{command[0]} cannot be started: {error.strerror}") from error
    in_time = True
    try:
        process.wait(max(0.0, deadline))
    except subprocess.TimeoutExpired:
        in_time = False
    finally:
        kill_group(process.pid)
        process.wait()
    status = process.returncode if process.returncode >= 0 else 128 - process.returncode
    return Ended(status, time.monotonic() - started, timed_out=not in_time)


def kill_group(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to the process group that ``pid`` leads, if there still is one."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def die_with(parent: int, number: int) -> None:
    """Have the kernel send ``number`` to this process when its parent dies; end at once if that has happened."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _die_with_parent() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def terminated_as_interrupted() -> Iterator[None]:
    """While this is active, the first SIGTERM raises KeyboardInterrupt; no other one disturbs the clean-up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def leave(_number: int, _frame: FrameType | None) -> NoReturn:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
