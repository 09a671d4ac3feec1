"""The commands of a step on this host: what they write goes to the files of the step, as far as there is room."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from wheel_checks.errors import SourceError
from wheel_checks.process import Ended, StartError, run

MOST_OUTPUT = 64 << 20  # bytes of standard output, and of standard error, that are kept


@dataclass
class Kept:
    """A file that takes the first ``limit`` bytes of a stream, then a line that says so, then nothing more."""

    file: IO[bytes]
    limit: int
    seen: int = 0

    def write(self, data: bytes) -> None:
        """Append ``data``, as far as there is room."""
        room = self.limit - self.seen
        self.seen += len(data)
        self.file.write(data[: max(0, room)])
        if 0 <= room < len(data):
            self.file.write(f"\n(more than {self.limit} bytes: the rest is dropped)\n".encode())


def run_command(
    command: Sequence[str], *, environ: Mapping[str, str], output: Path, log: Path, deadline: float
) -> Ended:
    """Run ``command`` for at most ``deadline`` seconds; its status is 128 + N after signal N.

    Standard output goes to ``output``, standard error is appended to ``log``. Raises SourceError when the command
    cannot be started, or a file cannot be written.
    """
    try:
        with output.open("wb", buffering=0) as out, log.open("ab", buffering=0) as err:
            sinks = {1: Kept(out, MOST_OUTPUT).write, 2: Kept(err, MOST_OUTPUT).write}
            ended = run(command, deadline=deadline, environment=environ, sinks=sinks)
    except StartError as error:
        raise SourceError(f"{command[0]} cannot be started: {error}") from error
    except OSError as error:
        raise SourceError(f"{error.filename or output.parent} cannot be written: {error.strerror}") from error
    return ended if ended.status >= 0 else replace(ended, status=128 - ended.status)
