"""One step of an install as a user or a Dockerfile writes it: what it asks for, of whom, and how."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from wheelproof.wheels.declared_model import Typed


class Verb(StrEnum):
    """What a step does."""

    INSTALL = "install"
    UNINSTALL = "uninstall"
    SYNC = "sync"
    ADD = "add"
    RUN = "run"
    LOCKED = "locked"  # installs what a lock file names
    APART = "apart"  # in an environment that is made for it
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Step:
    """One step: ``text`` is how it was written, ``installers`` whose command it is, () for those that are asked.

    ``requirements`` and ``typed`` are what it asks for, ``options`` what is passed on to the installer, and
    ``arguments`` the words of a command of a project. ``unread`` says why the step is not understood. ``variables`` are
    those of a Dockerfile; ``program`` is the folder of a pip that is named by its whole path. What a file of a tree
    says is not ``trusted``: it changes no index that is contacted. ``by_sudo`` says that sudo looks for the program,
    and ``to_system`` that uv works on the Python of the system.
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
