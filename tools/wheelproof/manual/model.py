"""The command line as facts: commands, options, arguments, and what their values may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """What a value is, as far as a shell can complete it."""

    FREE = "free"  # a version, a number, a URL: nothing to offer
    FILE = "file"
    FOLDER = "folder"
    WORD = "word"


@dataclass(frozen=True, slots=True)
class Values:
    """What may stand as a value: ``words`` for a Kind.WORD, or ``shared``, the name of a list that several share.

    ``closed`` is True where nothing else may stand, ``separated`` where several are given with commas between them;
    ``suffix`` is what follows each word.
    """

    kind: Kind = Kind.FREE
    words: tuple[str, ...] = ()
    shared: str = ""
    closed: bool = False
    separated: bool = False
    suffix: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """An option: its flags (``-q``, ``--quiet``), its help, and its value; ``values`` is None when it takes no value.

    ``tree`` says what the configuration file of a tree does to it, "" for nothing.
    """

    flags: tuple[str, ...]
    help: str
    metavar: str = ""
    values: Values | None = None
    repeatable: bool = False
    tree: str = ""


@dataclass(frozen=True, slots=True)
class Argument:
    """A positional argument. ``nargs`` is "" for exactly one, else "?", "*" or "+"."""

    metavar: str
    help: str
    values: Values
    nargs: str = ""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name ("pins check"), summary, arguments, and options by the titles of their groups.

    ``configurable`` is False when its options are not set by the configuration or the environment.
    """

    name: str
    summary: str
    arguments: tuple[Argument, ...]
    groups: Mapping[str, tuple[Option, ...]]
    configurable: bool = True

    @property
    def options(self) -> tuple[Option, ...]:
        """The options of all groups."""
        return tuple(option for group in self.groups.values() for option in group)


@dataclass(frozen=True, slots=True)
class Manual:
    """The whole command line. ``lists`` are the words that ``Values.shared`` names."""

    version: str
    commands: tuple[Command, ...]
    lists: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def below(self, name: str) -> tuple[Command, ...]:
        """The sub-commands of a command; of "" the commands themselves."""
        prefix = f"{name} " if name else ""
        return tuple(c for c in self.commands if c.name.startswith(prefix) and " " not in c.name.removeprefix(prefix))

    def words(self, values: Values) -> tuple[str, ...]:
        """The words that may be there."""
        return self.lists[values.shared] if values.shared else values.words

    def every_value(self) -> Iterator[tuple[str, Values]]:
        """The metavar of each option and argument that takes a value, and what the value may be."""
        for command in self.commands:
            yield from ((o.metavar, o.values) for o in command.options if o.values)
            yield from ((argument.metavar, argument.values) for argument in command.arguments)
