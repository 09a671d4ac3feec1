"""One step of an install, as a user or a Dockerfile writes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from wheelproof.wheels.declared_model import Typed


class Verb(StrEnum):
    """The action of a step."""

    INSTALL = "install"
    UNINSTALL = "uninstall"
    SYNC = "sync"
    ADD = "add"
    RUN = "run"
    LOCKED = "locked"  # installs a lock file
    APART = "apart"  # in an environment that is made for it
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``text`` is its source, ``installers`` its programs, () for the requested ones.

    ``requirements`` and ``typed`` are its targets, ``options`` those of the installer, and ``arguments`` the words of a
    project's command. ``unread`` says why the step is not understood. ``variables`` come from a Dockerfile; ``program``
    is the folder of a pip that is named by its whole path. Files of a tree are not ``trusted``: they add no index. With
    ``by_sudo`` sudo finds the program, and with ``to_system`` uv uses the system's Python.
    """

    text: str
    verb: Verb = Verb.INSTALL
    installers: tuple[str, ...] = ()
    requirements: tuple[str, ...] = ()
    typed: tuple[Typed, ...] = ()
    options: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    with_: tuple[str, ...] = ()
    upgrade: bool = False
    pre: bool = False
    to_user: bool = False
    folder: str = ""
    project: Path = field(default_factory=Path)
    is_exact: bool = True
    wheels_only: bool = False
    unread: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    program: str = ""
    trusted: bool = True
    by_sudo: bool = False
    to_system: bool = False
