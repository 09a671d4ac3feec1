"""The process of one cell: takes it its way, so that a crash, a signal or a deadline ends this cell and no other.

Reads a pickled :class:`Task` from standard input, and writes the name of each step as a line to standard output.
SIGTERM, which it also gets when the run that started it dies, ends it in good order.
"""

import os
import pickle
import sys

from wheel_checks.errors import UsageError
from wheel_checks.interrupts import terminated_as
from wheelproof.matrix.executors.base import Executor
from wheelproof.matrix.executors.docker.executor import DockerExecutor
from wheelproof.matrix.executors.venv import VenvExecutor
from wheelproof.matrix.way import Task, go

EXECUTORS = ("docker", "venv")
INTERRUPTED = 130


def make_executor(name: str) -> Executor:
    """The executor of this name. Raises UsageError for another, SourceError when what it needs is missing."""
    if name == "venv":
        return VenvExecutor()
    if name == "docker":
        return DockerExecutor()
    raise UsageError(f"unknown executor {name!r}", expected=f"one of {', '.join(EXECUTORS)}")


def _say(step: str) -> None:
    os.write(1, f"{step}\n".encode())


def main() -> int:
    """Take the cell its way; 0 when it came to an end of it, 130 when it was interrupted."""
    with terminated_as(KeyboardInterrupt()):
        try:
            task: Task = pickle.load(sys.stdin.buffer)  # noqa: S301  # from the process that started this one
            go(task, make_executor(task.executor), _say)
        except KeyboardInterrupt:
            return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
