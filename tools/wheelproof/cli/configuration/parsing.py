"""The settings of one run: flags > environment > the user's own file > the file of the tree > default.

Every option of a command is a key of the configuration, by its long name without the dashes (``fail-on``), and an
environment variable (``WHEELPROOF_FAIL_ON``). Nothing is declared twice: the parser of the command says which options
exist, and a value from elsewhere passes through the same conversion, choices and action as the flag.

The user's own file is ``$XDG_CONFIG_HOME/wheelproof/wheelproof.toml``, where every key applies. That of the tree is the
nearest upwards from the current folder that is a ``wheelproof.toml``, or a ``pyproject.toml`` with a table
``[tool.wheelproof]``; there a key counts only as far as its option gives a tree the right (``rights.py``). A file that
the user names (``--config``, ``WHEELPROOF_CONFIG``) is applied as the user's own, instead of both.

The table itself has the options of all commands; ``[tool.wheelproof.verify]`` those of one command, which win.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wheel_checks.errors import UsageError
from wheelproof.cli.configuration.files import ConfigFile, TreeFile, find_config, read_config, read_own
from wheelproof.cli.configuration.ownership import is_safe, trusted_owners
from wheelproof.cli.configuration.tree import Run, TreeSettings, folders_of, merge_tree, not_ours, warnings
from wheelproof.cli.configuration.values import Setting, convert
from wheelproof.cli.options.output import CommandParser, add_output_options, open_output, warn

PREFIX = "WHEELPROOF_"
FLAGS_ONLY = {"config", "show-config"}  # where the file is cannot be in the file


def parse_arguments(
    parser: CommandParser,
    arguments: Sequence[str],
    *,
    command: str,
    commands: Collection[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> argparse.Namespace | None:
    """Parse ``arguments`` and fill the other options from the environment, files and defaults.

    Settings that a tree may not make are named on standard error. ``from_tree`` of the result holds the options that
    have their value from there, ``tree`` its settings of rules, and ``origins`` the origins of other options.

    Returns None after printing, when ``--show-config`` was given. Raises UsageError for an unknown key, an invalid
    value, an unreadable file, and a file of another user with expectations; SystemExit after ``--help``.
    """
    if not parser.configurable:
        return parser.parse(arguments)
    options = parser.options
    show = "--show-config" in arguments
    defaults = {action.dest: action.default for action in options.values()}
    required = [name for name, action in options.items() if action.required]
    namespace = _typed(parser, arguments, show=show)
    environment = os.environ if environment is None else environment
    named = getattr(namespace, "config", None) or environment.get(f"{PREFIX}CONFIG")
    own = read_config(Path(named)) if named else read_own(environment)
    configured = options.keys() - FLAGS_ONLY
    variables = _from_environment(environment, configured)
    flags = {key for key, action in options.items() if hasattr(namespace, action.dest)}
    origins = dict.fromkeys(flags, "flag")
    for key, setting in (_from_file(own, configured, command, commands) | variables).items():
        if key not in flags:
            action = options[key]
            setattr(namespace, action.dest, convert(parser, action, setting, defaults[action.dest]))
            origins[key] = setting.origin

    run = Run(parser, namespace, defaults, flags | variables.keys(), environment)
    tree = TreeSettings()
    if not named:
        file = find_config(folder or Path.cwd(), environment.get("HOME", ""), trusted_owners(environment))
        if file.path != own.path:
            tree = _from_tree(run, file, lambda: _from_file(file, configured, command, commands), stop=not show)
    vars(namespace).update({dest: value for dest, value in defaults.items() if not hasattr(namespace, dest)})
    namespace.tree, namespace.from_tree, namespace.origins = tree.rules, frozenset(tree.dests), origins
    if show:
        from wheel_checks.report.wording import write
        from wheelproof.cli.configuration.showing import shown

        with open_output("-") as stream:
            named_options = {key: options[key] for key in configured}
            write(stream, "".join(shown(named_options, namespace, origins, own.path, tree)))
        return None
    warn(warnings(tree.refused, environment))
    missing = [f"--{key}" for key in required if key not in origins and key not in tree.origins]
    if missing:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    return namespace


def _typed(parser: CommandParser, arguments: Sequence[str], *, show: bool) -> argparse.Namespace:
    """What the command line says, without what it leaves open; with ``show`` nothing is required."""
    if show:
        parser.forgive_missing_arguments()
    for action in parser.options.values():  # so that what is left open stays out of the namespace
        action.default, action.required = argparse.SUPPRESS, False
    return parser.parse(arguments)


def _from_tree(run: Run, file: TreeFile, settings: Callable[[], dict[str, Setting]], *, stop: bool) -> TreeSettings:
    """The settings that apply from the tree. Raises UsageError, for the file of another user only if ``stop``."""
    if not file.fault or is_safe(folders_of(file), getattr(run.namespace, "safe_directory", ())):
        return merge_tree(run, file, settings())
    foreign = None
    with contextlib.suppress(UsageError):
        foreign = settings()
    return not_ours(run, file, foreign, stop=stop)


def _from_file(
    file: ConfigFile, options: Collection[str], command: str, commands: Collection[str]
) -> dict[str, Setting]:
    if not file.table:
        return {}
    scratch = CommandParser(prog="", description="")
    add_output_options(scratch)
    shared = scratch.options.keys() - FLAGS_ONLY
    for key, value in file.table.items():
        if key not in shared and key not in commands:
            raise _unknown_key(key, file, {*shared, *commands})
        if key in commands and not isinstance(value, dict):
            raise UsageError(f"{key} in {file.path} is a value", expected=f"a table with options of `wheelproof {key}`")
    own: Mapping[str, Any] = file.table
    table = command.replace(" ", ".")  # "pins check" is the table pins.check
    for part in command.split():
        own = own.get(part, {})
        if not isinstance(own, dict):
            raise UsageError(f"{part} in {file.path} is a value", expected=f"a table of `wheelproof {command}`")
    for key in own:
        if key not in options:
            raise _unknown_key(f"{table}.{key}", file, {f"{table}.{option}" for option in options})
    found = {key: Setting(value, f"{key} in {file.path}") for key, value in file.table.items() if key in shared}
    found |= {key: Setting(value, f"{table}.{key} in {file.path}") for key, value in own.items()}
    return {key: setting for key, setting in found.items() if key in options}


def _unknown_key(key: str, file: ConfigFile, known: Collection[str]) -> UsageError:
    nearest = get_close_matches(key, known, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(sorted(known))}"
    return UsageError(f"the configuration file {file.path} has the unknown key {key!r}", hint=hint)


def _from_environment(environment: Mapping[str, str], options: Collection[str]) -> dict[str, Setting]:
    """The settings of this command in the environment; an empty variable counts as unset.

    A variable that no option has may belong to another command, or to someone else (an image's WHEELPROOF_VERSION):
    only one similar to the name of an option is reported as a mistake.
    """
    variables = {PREFIX + key.replace("-", "_").upper(): key for key in options}
    for name in sorted(environment.keys() - variables.keys() - {f"{PREFIX}CONFIG", f"{PREFIX}DEBUG"}):
        if name.startswith(PREFIX):
            known = [variable.removeprefix(PREFIX) for variable in variables]
            nearest = get_close_matches(name.removeprefix(PREFIX), known, n=1, cutoff=0.85)
            if nearest:
                hint = f"did you mean {PREFIX}{nearest[0]}?"
                raise UsageError(f"the environment variable {name} is unknown", hint=hint)
    return {
        key: Setting(environment[v], f"environment variable {v}") for v, key in variables.items() if environment.get(v)
    }
