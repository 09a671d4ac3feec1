"""The protection of an environment's packages in any command: the installed guard, and the commands that bypass it."""

from __future__ import annotations

from dataclasses import dataclass

from wheel_checks.facts.pins.receipt import InstalledGuard
from wheel_checks.model import Unavailable


@dataclass(frozen=True, slots=True)
class Bypass:
    """A command that replaces protected packages although it could be prevented, and ``why`` it is not."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class EnvironmentGuard:
    """The guard of the environment at ``prefix``, whose interpreter is ``python``.

    ``guard`` is None if none is installed. ``damages`` are sentences about changes since it was guarded, by the name of
    the package; ``versions`` those that the guard keeps. ``unknown`` are the kept packages whose former state is
    unknown. ``outside`` are commands that nothing in an environment can prevent.
    """

    prefix: str
    python: str
    guard: InstalledGuard | Unavailable | None
    bypasses: tuple[Bypass, ...] = ()
    damages: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    outside: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
