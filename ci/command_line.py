"""The command line as its parsers declare it: the source of the reference, the manual page and the completions."""

from __future__ import annotations

import argparse
import importlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from wheelproof.cli.main import COMMANDS
from wheelproof.cli.options.output import CommandParser, make_parser

SHARED = ("output", "run", "sources")
"""The groups of options that most commands share, which are documented once."""


@dataclass(frozen=True, slots=True)
class Command:
    """A command: its name ("pins check"), its summary, and its parser."""

    name: str
    summary: str
    parser: CommandParser

    @property
    def arguments(self) -> list[argparse.Action]:
        """The positional arguments."""
        return [action for _, actions in self.parser.groups for action in actions if not action.option_strings]

    @property
    def groups(self) -> dict[str, list[argparse.Action]]:
        """The options by the titles of their groups."""
        groups = {title: [a for a in actions if a.option_strings] for title, actions in self.parser.groups}
        return {title: options for title, options in groups.items() if options}

    @property
    def options(self) -> list[argparse.Action]:
        """The options of all groups."""
        return [option for group in self.groups.values() for option in group]


def read_commands() -> list[Command]:
    """Every command, each followed by the commands below it."""
    return list(_read(COMMANDS))


def _read(table: dict[str, tuple[str, str]], above: str = "") -> Iterator[Command]:
    for name, (module_name, summary) in table.items():
        module = importlib.import_module(module_name)
        yield Command(f"{above}{name}", summary, make_parser(f"{above}{name}", summary, module))
        yield from _read(getattr(module, "SUBCOMMANDS", {}), f"{above}{name} ")


def below(commands: Iterable[Command], name: str = "") -> list[Command]:
    """The commands directly below the command ``name``; for "" the top-level commands."""
    return [command for command in commands if command.name.rpartition(" ")[0] == name]


def one_parser(commands: Iterable[Command]) -> argparse.ArgumentParser:
    """A parser of the whole command line, for libraries that expect one. It contains the parsers of ``commands``."""
    root = argparse.ArgumentParser("wheelproof")
    root.add_argument("-V", "--version", action="store_true", help="show the version")
    parsers: dict[str, argparse.ArgumentParser] = {"": root}
    groups: dict[str, argparse._SubParsersAction[argparse.ArgumentParser]] = {}
    for command in commands:
        above, _, name = command.name.rpartition(" ")
        if above not in groups:
            passing: Any = lambda made, **_: made  # noqa: E731  # add_parser passes its arguments on
            groups[above] = parsers[above].add_subparsers(
                title="commands", metavar="COMMAND", prog=parsers[above].prog, parser_class=passing
            )
        parsers[command.name] = groups[above].add_parser(name, help=command.summary, made=command.parser)
    return root


def help_of(action: argparse.Action) -> str:
    """The help of an option or argument as plain text."""
    return (action.help or "").replace("%%", "%")


def sentence(text: str) -> str:
    """A help as a sentence: with a capital, unless it starts with a word that is spelt so ("x86_64", "quick:")."""
    if re.match(r"[a-z]+ ", text):
        text = text[0].upper() + text[1:]
    return f"{text.rstrip('.')}." if text else ""


def value_name(action: argparse.Action) -> str:
    """The value of an option or argument: its choices (``text|json``), else its metavar; "" if it takes no value."""
    if action.nargs == 0:
        return ""
    if action.choices is not None and action.option_strings:
        return "|".join(map(str, action.choices))
    return str(action.metavar or action.dest.upper().replace("_", "-"))


def place(argument: argparse.Action) -> str:
    """An argument in a synopsis, as argparse writes it: ``[TARGET ...]``."""
    name = str(argument.metavar or argument.dest)
    written = {"None": name, "?": f"[{name}]", "*": f"[{name} ...]", "+": f"{name} [{name} ...]"}
    return written[str(argument.nargs)]
