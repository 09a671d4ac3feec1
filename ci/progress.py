"""Show the progress of a long installation: a line at most every ten seconds, on a terminal or in a log."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

EVERY = 10.0  # seconds between two lines
LAST_LINES = 20
STEPS = ("Collecting ", "  Downloading ", "Downloading ", "Building ")  # not: warnings, installed packages
WIDTH = 70  # of pip's last output


class PipOutput:
    """The output of pip so far: the number of packages that it has looked up, and its last lines."""

    def __init__(self, stream: IO[str], packages: int = 0) -> None:
        self.last: deque[str] = deque(maxlen=LAST_LINES)
        self._found, self._packages, self._step = 0, packages, "pip starts"
        self._reader = threading.Thread(target=self._read, args=(stream,))
        self._reader.start()

    def _read(self, stream: IO[str]) -> None:
        for line in stream:
            self._found += line.startswith(("Collecting ", "Processing "))  # the latter: a file
            self.last.append(line.strip())
            if line.startswith("Installing collected packages"):
                self._step = f"installing {line.count(',') + 1} packages"
            elif line.startswith(STEPS):
                self._step = line.strip()[:WIDTH]

    def __str__(self) -> str:
        """``41 of 97 packages found; Downloading mypy-2.0.0.whl (12.1 MB)``."""
        of_all = f" of {self._packages}" if self._packages else ""
        return f"{self._found}{of_all} packages found; {self._step}"

    def join(self) -> None:
        """Wait until all has been read."""
        self._reader.join()


def _size(folder: Path) -> int:
    """The bytes of the files in a folder that changes meanwhile."""
    total = 0
    for parent, _, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += os.lstat(os.path.join(parent, name)).st_size  # noqa: PTH118  # thousands of files
    return total


def run_pip(
    command: Sequence[str], environment: Mapping[str, str], cwd: Path, *, packages: int = 0, into: Path | None = None
) -> int:
    """The exit code of a pip that installs ``packages`` (0: not known). Its last lines are shown when it fails.

    The size of ``into``, if pip unpacks and installs, is shown with each line.
    """
    started = time.monotonic()
    with subprocess.Popen(
        command, env=environment, cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    ) as pip:
        assert pip.stdout is not None  # noqa: S101  # for mypy: it was requested
        output = PipOutput(pip.stdout, packages)
        while True:
            try:
                status = pip.wait(EVERY)
                break
            except subprocess.TimeoutExpired:
                size = f"; {into.name} has {_size(into) / 1e6:,.0f} MB" if into else ""
                print(f"  {time.monotonic() - started:4.0f} s: {output}{size}", file=sys.stderr, flush=True)
        output.join()
    if status:
        print("\n".join(output.last), file=sys.stderr, flush=True)
    return status
