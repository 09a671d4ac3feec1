"""The places of an installed guard's files, and the text of its programs."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass

VERSION = 1  # of the program; a change after a release makes the next one
FOLDER = "torch-guard"
CONSTRAINTS, KEEP, SETTINGS, STATE, RECEIPT = (
    "constraints.txt",
    "keep.txt",
    "settings.json",
    "state.json",
    "receipt.json",
)
PROGRAM, ORIGINALS, HOOK = "program", "originals", "pip-python"
MAIN = "__main__.py"
PACKAGE = "torch_guard"  # the name of this package in an environment
OFF = "WHEELPROOF_GUARD"  # WHEELPROOF_GUARD=off: one command without the guard
INSIDE = "WHEELPROOF_GUARD_INSIDE"  # set for the children of a guarded command, whose tripwire looks after them
MARK = "# A front program of the guard"

FRONT = """\
#!/bin/sh
# A front program of the guard of this environment (wheelproof pins guard): it adds what keeps the installed packages,
# says so on standard error, and runs {name}. To remove it: wheelproof pins guard --uninstall
exec {python} -I -S -B {program} {name} "$@"
"""
MAIN_TEXT = """\
import sys

from torch_guard.main import main

sys.exit(main(sys.argv[1:]))
"""


@dataclass(frozen=True)
class Place:
    """An environment: its ``prefix``, as ``sys.prefix`` of its ``python`` says, an absolute path."""

    prefix: str
    python: str

    @property
    def share(self) -> str:
        """The folder of the guard."""
        return share_of(self.prefix)

    @property
    def bin(self) -> str:
        """The folder of front programs: for a system's Python one before the package manager's on PATH."""
        return "/usr/local/bin" if self.prefix == "/usr" else os.path.join(self.prefix, "bin")

    @property
    def pip_conf(self) -> str:
        """The configuration of pip for this environment, which ``--isolated`` does not switch off."""
        return os.path.join(self.prefix, "pip.conf")

    def file(self, *names: str) -> str:
        """A path in the folder of the guard."""
        return os.path.join(self.share, *names)


def share_of(prefix: str) -> str:
    """The folder of the guard of an environment."""
    return os.path.join("/usr/local" if prefix == "/usr" else prefix, "share", FOLDER)


def kept(place: Place, path: str) -> str:
    """The place of the original of ``path``, under its own name, which pip shows in messages."""
    folder, name = os.path.split(path)
    return place.file(ORIGINALS, folder.strip("/").replace("%", "%25").replace("/", "%2F"), name)


def original(place: Place, name: str) -> str:
    """The program that a front program of this name runs, "" if none is found."""
    candidates = [kept(place, os.path.join(place.bin, name))]
    if place.prefix == "/usr":
        candidates.append(os.path.join("/usr/bin", name))  # which stays where its package manager put it
    return next((path for path in candidates if os.path.isfile(path) and not is_front(path)), "")


def front_text(name: str, python: str, program: str) -> str:
    """The text of a front program: ``name`` is pip, uv or the hook of pip's configuration."""
    return FRONT.format(name=name, python=shlex.quote(python), program=shlex.quote(program))


def is_front(path: str) -> bool:
    """Whether a file is the front program of a guard, of this environment or another."""
    try:
        with open(path, "rb") as file:
            return MARK.encode() in file.read(200)
    except OSError:
        return False
