"""Type the commands of ``ci/reference/screens.toml`` into a terminal, and record its output for their pages.

usage: python ci/update_screens.py [--check] [COMMAND ...]

Without COMMAND: all of them. The lane "online" queries the package index; "kernels" uses the Python that
WHEELPROOF_KERNELS_PYTHON names, else .venv-kernels. ``--check`` types commands that need neither, writes nothing, and
exits 1 if an output differs from the record. ``ci/update_reference.py`` then writes the pages.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # a script finds only modules in its own folder

from ci.lanes import kernels_python  # noqa: E402  # found by the line above
from ci.reference.screens import COLUMNS, LINES, Screen, screens  # noqa: E402  # as above
from tests.docs.blocks import read_blocks  # noqa: E402  # as above

TAKEN_FROM = re.compile(r"^  taken from .*\n", re.MULTILINE)  # the indexes that are configured where the script runs
VARYING = re.compile(
    r"\d[\d.,]* (?:m?s|[kMG]?B read in \d+ requests?)\b"
)  # of which two runs may show different figures


def main() -> int:
    """Keep or check the screens; 1 when ``--check`` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("commands", nargs="*", metavar="COMMAND")
    arguments = parser.parse_args()
    wanted = [screen for name, screen in screens().items() if name in arguments.commands or not arguments.commands]
    if arguments.check:
        wanted = [screen for screen in wanted if not screen.lane]
    with ThreadPoolExecutor(2) as pool:
        shown = dict(zip(wanted, pool.map(show, wanted), strict=True))
    stale = [screen for screen, text in shown.items() if not is_kept(screen, text)]
    for screen in stale:
        if not arguments.check:
            screen.kept.write_text(shown[screen], encoding="utf-8")
    if stale and arguments.check:
        names = " ".join(screen.command for screen in stale)
        sys.stderr.write(f"stale screens: run `python ci/update_screens.py {names}`, then ci/update_reference.py\n")
        return 1
    print(f"{len(wanted)} screens, {len(stale)} changed")
    return 0


def is_kept(screen: Screen, text: str) -> bool:
    """Whether the text equals the record, except seconds and bytes read."""
    kept = screen.kept.read_text(encoding="utf-8") if screen.kept.exists() else ""
    return VARYING.sub("", kept) == VARYING.sub("", text)


def show(screen: Screen) -> str:
    """The output of the command on a terminal, its first lines if it is longer than a screen."""
    with tempfile.TemporaryDirectory(prefix="wheelproof-screen-") as place:
        folder = Path(place) / "project"
        prepare(screen, folder)
        text = typed(screen.typed, folder).replace("\r\n", "\n").replace(str(folder), "/home/user/project")
    lines = TAKEN_FROM.sub("", text).rstrip().split("\n")
    return "\n".join(lines if len(lines) < LINES else [*lines[: LINES - 2], "..."]) + "\n"


def prepare(screen: Screen, folder: Path) -> None:
    """Make the folder that the command is typed in."""
    shutil.copytree(ROOT / "docs/files", folder)
    if screen.page:
        for block in read_blocks(ROOT / "docs" / screen.page):
            if block.title:
                (folder / block.title).write_text(block.text, encoding="utf-8")
    if screen.lane == "kernels":
        (folder / "torch-env").symlink_to(Path(kernels_python()).parents[1])
    if screen.before:
        bash = ["bash", "--norc", "-c", screen.before]
        subprocess.run(bash, cwd=folder, env=environment(folder), stdout=subprocess.DEVNULL, check=False)


def typed(command: str, folder: Path) -> str:
    """The output on the terminal. Progress goes to standard error, and is omitted."""
    ours, side = pty.openpty()
    fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
    child = subprocess.Popen(
        ["bash", "--norc", "-c", command],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        stdout=side,
        stderr=subprocess.DEVNULL,
    )
    os.close(side)
    parts = []
    try:
        while part := os.read(ours, 65536):
            parts.append(part)
    except OSError:  # EIO: no process has the terminal open any more
        pass
    finally:
        os.close(ours)
        child.wait()
    return b"".join(parts).decode("utf-8")


def environment(folder: Path) -> dict[str, str]:
    """A terminal with colours and an empty cache; the local configuration of wheelproof does not apply."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    left_out = ("WHEELPROOF_", "CI", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(left_out)}
    return kept | {"PATH": path, "TERM": "xterm-256color", "XDG_CACHE_HOME": str(folder.parent / "cache")}


if __name__ == "__main__":
    sys.exit(main())
