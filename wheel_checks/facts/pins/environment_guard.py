"""What keeps the packages of an environment, however it is asked: the installed guard, and the ways that are open."""

from dataclasses import dataclass

from wheel_checks.facts.pins.receipt import InstalledGuard
from wheel_checks.model import Unavailable


@dataclass(frozen=True, slots=True)
class OpenWay:
    """A way to replace what should be held that could be closed: a command of users, and ``why`` it is open."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class EnvironmentGuard:
    """The guard of the environment at ``prefix``, whose interpreter is ``python``.

    ``guard`` is None if none is installed. ``damages`` are sentences about what is no longer as it was when it was
    guarded, by the name of the package; ``versions`` those that the guard holds. ``unknown`` are the held packages of
    which it is unknown how they were. ``outside`` are the ways that nothing in an environment can close.
    """

    prefix: str
    python: str
    guard: InstalledGuard | Unavailable | None
    open_ways: tuple[OpenWay, ...] = ()
    damages: tuple[tuple[str, str], ...] = ()
    versions: tuple[tuple[str, str], ...] = ()
    outside: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
