"""Real interactive shells on their own terminal: the line that a person sees after the Tab key."""

from __future__ import annotations

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

from tests.support.patience import PATIENCE

NEEDED = ("bash", "zsh", "fish", "mandoc", "man")

_SHOW = "\x18d"  # the keys on which the shell prints its line
_SET_UP = {
    "bash": "source {script}; bind 'set bell-style none'; bind 'set show-all-if-ambiguous on'; "
    'bind -x \'"\\C-xd": printf "LINE[%s]LINE" "$READLINE_LINE"\'',
    "zsh": 'autoload -Uz compinit; compinit -u -D; eval "$(<{script})"; '
    "setopt no_beep no_auto_remove_slash; "
    "show() {{ print -rn -- \"LINE[$BUFFER]LINE\" }}; zle -N show; bindkey '^Xd' show",
}
_START = {"bash": ["bash", "--norc", "--noprofile", "-i"], "zsh": ["zsh", "-f", "-i"]}


def all_there() -> bool:
    """True when every shell, and the tools for manual pages, are installed."""
    return all(map(shutil.which, NEEDED))


def line_after_tab(shell: str, script: Path, typed: str, folder: Path) -> str:
    """The line of bash or zsh in ``folder`` after ``typed``, the Tab key and a space, without spaces at its end.

    With the space zsh removes its suffix for the next word of a list (``GB300,``).
    """
    terminal, side = pty.openpty()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder),
        "TERM": "dumb",
        "COLUMNS": "1000",
        "LC_ALL": "C.UTF-8",
    }
    child = subprocess.Popen(
        _START[shell], stdin=side, stdout=side, stderr=side, cwd=folder, env=environment, start_new_session=True
    )
    os.close(side)
    try:
        keys = f"stty cols 1000; {_SET_UP[shell].format(script=script)}; echo RE''ADY\n"
        os.write(terminal, keys.encode())
        _read_until(terminal, r"READY")
        os.write(terminal, f"{typed}\t {_SHOW}".encode())
        return _read_until(terminal, r"LINE\[([^%$]*?)\]LINE").rstrip()
    finally:
        child.kill()
        child.wait()
        os.close(terminal)


def fish_offers(script: Path, typed: str, folder: Path) -> set[str]:
    """What fish offers for the last word of ``typed``, without descriptions."""
    command = f"source {script}; complete -C {typed!r}"
    child = subprocess.run(
        ["fish", "--no-config", "-c", command],
        cwd=folder,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"},
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert not child.stderr
    return {line.partition("\t")[0] for line in child.stdout.splitlines()}


def _read_until(terminal: int, pattern: str) -> str:
    """What matched (its first group, if any) in the output of the shell. Fails when the deadline passes."""
    output, until = "", time.monotonic() + PATIENCE
    while time.monotonic() < until:
        if select.select([terminal], [], [], 1.0)[0]:
            output += os.read(terminal, 65536).decode(errors="replace")
            if found := re.search(pattern, output):
                return found[found.re.groups]
    raise AssertionError(f"the shell did not answer {pattern}: {output!r}")
