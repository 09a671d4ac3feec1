"""The screen of a person: the real command on a pseudo-terminal of 80x24, which a terminal emulator draws."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyte

COLUMNS, LINES = 80, 24
LINK = re.compile(r"\x1b\]8;[^;]*;([^\x1b]*)\x1b\\")
_CONTROLS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\]8;[^\x1b]*\x1b\\")


@dataclass(frozen=True)
class Screen:
    """The exit status of a command, its output, and the screen afterwards; ``scrolled`` are lines above it."""

    status: int
    written: str
    rows: tuple[str, ...]
    scrolled: int

    @property
    def links(self) -> set[str]:
        """The addresses that the terminal was given."""
        return set(filter(None, LINK.findall(self.written)))

    @property
    def lines(self) -> list[str]:
        """The output, without colours, links and lines of progress, of any length."""
        text = _CONTROLS.sub("", self.written).replace("\r\n", "\n")
        return [line.rpartition("\r")[2].rstrip() for line in text.split("\n")]

    @property
    def text(self) -> str:
        """The rows that are to be seen."""
        return "\n".join(self.rows).rstrip()


def run_on_screen(folder: Path, *arguments: str, environment: Mapping[str, str] | None = None) -> Screen:
    """Run ``wheelproof`` in ``folder`` on its own terminal, as the only process that writes there."""
    inherited = {name: value for name, value in os.environ.items() if name not in {"CI", "COLUMNS", "LINES"}}
    terminal, side = pty.openpty()
    try:
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        child = subprocess.Popen(
            [sys.executable, "-m", "wheelproof", *arguments],
            stdin=side,
            stdout=side,
            stderr=side,
            cwd=folder,
            env={**inherited, "TERM": "xterm-256color", **(environment or {})},
        )
        os.close(side)
        written = _all_of(terminal).decode()
        status = child.wait()
    finally:
        os.close(terminal)
    screen = pyte.HistoryScreen(COLUMNS, LINES, history=10_000)
    pyte.Stream(screen).feed(written)
    return Screen(status, written, tuple(row.rstrip() for row in screen.display), len(screen.history.top))


def _all_of(terminal: int) -> bytes:
    """The output until the last writing process has ended."""
    data = b""
    while True:
        try:
            some = os.read(terminal, 65_536)
        except OSError:  # EIO: how Linux says that the other side is closed
            return data
        if not some:
            return data
        data += some
