"""Reads the manual from the parsers of the commands, so that nothing is written twice."""

from __future__ import annotations

import argparse
import importlib
from collections.abc import Iterator
from dataclasses import replace

from wheel_checks.report import FORMATS
from wheelproof.cli.main import COMMANDS
from wheelproof.cli.options import CommandParser, ListAction, make_parser
from wheelproof.cli.rights import Effect, right_of
from wheelproof.manual.model import Argument, Command, Kind, Manual, Option, Values
from wheelproof.version import __version__

FILE, FOLDER, FREE = Values(Kind.FILE), Values(Kind.FOLDER), Values()
RULES, GPUS, CPUS = (Values(Kind.WORD, shared=name) for name in ("rules", "gpus", "cpus"))

# What an option or argument takes, by what the help calls its value. A test knows of every name in use.
METAVARS = {
    "FILE": FILE,
    "PATH": FILE,
    "PLACE": FILE,
    "TARGET": FILE,
    "WHEEL": FILE,
    "PACKAGE": FILE,
    "PATH|VERSION": FILE,
    "REF|FILE": FILE,
    "PATTERN|FILE": FILE,
    "FILE.py|MODULE": FILE,
    "FOLDER": FOLDER,
    "FORMAT=FILE": Values(Kind.WORD, FORMATS, suffix="="),
    "PREFIX": RULES,
    "RULE": RULES,
    "GPU": GPUS,
    "CPU": CPUS,
    "PLATFORM": Values(Kind.WORD, ("x86_64", "aarch64", "all")),
    **dict.fromkeys(
        ("EXTRA", "FOLDERS", "GLOB", "GROUP", "HOST", "HOSTS", "LABEL", "N", "NAME", "NAME==VERSION", "SECONDS"), FREE
    ),
    **dict.fromkeys(("ID", "KEY=LABEL", "TEXT"), FREE),
    **dict.fromkeys(("REQUIREMENT", "SIZE", "SONAME", "SPEC", "URL", "VERSION", "WHAT"), FREE),
}


def read_manual() -> Manual:
    """The commands, as their parsers declare them, and the words that several share."""
    return Manual(__version__, tuple(_commands(COMMANDS)), {"rules": _rules(), "gpus": _gpus(), "cpus": _cpus()})


def _commands(table: dict[str, tuple[str, str]], above: str = "") -> Iterator[Command]:
    for name, (module_name, summary) in table.items():
        module = importlib.import_module(module_name)
        yield _command(make_parser(f"{above}{name}", summary, module), f"{above}{name}", summary)
        yield from _commands(getattr(module, "SUBCOMMANDS", {}), f"{above}{name} ")


def _command(parser: CommandParser, name: str, summary: str) -> Command:
    arguments: list[Argument] = []
    groups: dict[str, tuple[Option, ...]] = {}
    for title, actions in parser.groups:
        arguments += [_argument(action) for action in actions if not action.option_strings]
        if options := tuple(_option(action) for action in actions if action.option_strings):
            groups[title] = options
    return Command(name, summary, tuple(arguments), groups, parser.configurable)


def _argument(action: argparse.Action) -> Argument:
    metavar = str(action.metavar or action.dest)
    return Argument(metavar, _help(action), _values(action, metavar), str(action.nargs or ""))


def _option(action: argparse.Action) -> Option:
    flags = tuple(action.option_strings)
    if action.nargs == 0:
        return Option(flags, _help(action), repeatable=type(action).__name__ == "_CountAction", tree=_tree(action))
    metavar = str(action.metavar or action.dest.upper().replace("_", "-"))
    repeatable = isinstance(action, ListAction) or type(action).__name__ == "_AppendAction"
    return Option(flags, _help(action), metavar, _values(action, metavar), repeatable, _tree(action))


def _tree(action: argparse.Action) -> str:
    effect = right_of(action).effect
    return "" if effect is Effect.REFUSED else str(effect)


def _values(action: argparse.Action, metavar: str) -> Values:
    if action.choices is not None:
        return Values(Kind.WORD, tuple(map(str, action.choices)), closed=True)
    values = METAVARS.get(metavar, FREE)
    separated = isinstance(action, ListAction) and values.kind is Kind.WORD and not values.suffix
    return replace(values, separated=separated)


def _help(action: argparse.Action) -> str:
    return (action.help or "").replace("%%", "%")


def _rules() -> tuple[str, ...]:
    """The groups of rules, then every rule."""
    from wheel_checks.catalogue import all_rules  # imports every rule

    ids = [rule.id for rule in all_rules()]
    return (*dict.fromkeys(name.rstrip("0123456789") for name in ids), *ids)


def _gpus() -> tuple[str, ...]:
    """The names of the products, spelt as one word, which is understood as well."""
    from wheel_checks.facts.gpu.targets import products  # reads the table of products

    return tuple(product.name.replace(" ", "-") for product in products())


def _cpus() -> tuple[str, ...]:
    """The names of the CPUs that a machine is described by."""
    from wheel_checks.data import load  # reads the table of machines

    return tuple(row["name"] for row in load("variant_machines")["cpu"])
