"""The first process of a container: runs one command there, and ends the container in time.

    python3 first_process.py SECONDS COMMAND ARGUMENT...

It ends with the command's exit status, 128 + N after signal N. It ends early after SECONDS, at SIGTERM, and as soon as
its standard input is closed: the process that made the container has the other end, so that no container outlives it.
When this process ends, the kernel ends the others. It imports little, since an emulated interpreter is slow.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

TOO_SLOW = 124  # as of timeout(1)
LEFT_ALONE = 125  # no one waits for the command any more
CANNOT_START = 127  # as of a shell


def main(seconds: float, command: list[str]) -> int:
    """Run ``command`` for at most ``seconds``; its exit status."""
    end = time.monotonic() + seconds
    terminated: list[int] = []
    wakes, wake = os.pipe()  # signals write into it, so that one select waits for all events
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.signal(signal.SIGTERM, lambda number, _frame: terminated.append(number))
    child = os.fork()
    if child == 0:
        _become(command)
    while True:
        status = _reap(child)
        if status is not None:
            return status
        if terminated:
            return 128 + terminated[0]
        left = end - time.monotonic()
        if left <= 0:
            return TOO_SLOW
        ready = select.select([0, wakes], [], [], left)[0]
        if 0 in ready and not os.read(0, 4096):
            return LEFT_ALONE
        if wakes in ready:
            os.read(wakes, 4096)


def _reap(child: int) -> int | None:
    """The exit status of ``child`` if it has ended; meanwhile orphans, who become ours, are reaped."""
    while True:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended == child:
            code = os.waitstatus_to_exitcode(status)
            return code if code >= 0 else 128 - code
        if ended == 0:
            return None


def _become(command: list[str]) -> None:
    """Be ``command``, with nothing on standard input and every signal as usual."""
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.setsid()
        os.execvp(command[0], command)  # noqa: S606  # no shell is the point
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
    finally:
        os._exit(CANNOT_START)


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]), sys.argv[2:]))
