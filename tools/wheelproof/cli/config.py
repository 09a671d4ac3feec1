"""The settings of one run: flags > environment > configuration file > default.

Every option of a command is a key of the configuration, by its long name without the dashes (``fail-on``), and an
environment variable (``WHEELPROOF_FAIL_ON``). Nothing is declared twice: the parser of the command says which options
exist, and a value from elsewhere passes through the same conversion, choices and action as the flag.

The file is the nearest upwards from the current folder that is a ``wheelproof.toml``, or a ``pyproject.toml`` with a
table ``[tool.wheelproof]``. The table itself holds the options that all commands share; ``[tool.wheelproof.verify]``
those of one command, which win over the shared ones.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from wheel_checks.errors import UsageError, WheelproofError
from wheel_checks.sources.regular_file import read_start
from wheelproof.cli.options import CommandParser, ListAction, add_output_options, open_output

PREFIX = "WHEELPROOF_"
LARGEST_FILE = 1 << 20  # bytes; a configuration is a page, and anything much longer is not one
FLAGS_ONLY = {"config", "show-config"}  # where the file is cannot stand in the file
WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value from outside the command line, and where it was found ("fail-on in /x/wheelproof.toml")."""

    value: object
    origin: str


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """The wheelproof table of a configuration file. ``path`` is None, and the table empty, when there is no file."""

    path: Path | None
    table: Mapping[str, Any]


def parse_arguments(
    parser: CommandParser,
    arguments: Sequence[str],
    *,
    command: str,
    commands: Collection[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> argparse.Namespace | None:
    """Parse ``arguments`` and fill what they leave open from environment, file and defaults.

    Returns None after printing, when ``--show-config`` was given. Raises UsageError for an unknown key, a value that
    the flag would not take, or a configuration file that cannot be read; SystemExit after ``--help``.
    """
    if not parser.configurable:
        return parser.parse(arguments)
    options = parser.options
    show = "--show-config" in arguments
    if show:
        parser.forgive_missing_arguments()
    defaults = {action.dest: action.default for action in options.values()}
    required = [name for name, action in options.items() if action.required]
    for action in options.values():  # so that what the command line leaves open stays out of the namespace
        action.default, action.required = argparse.SUPPRESS, False
    namespace = parser.parse(arguments)

    environment = os.environ if environment is None else environment
    config_name = getattr(namespace, "config", None) or environment.get(f"{PREFIX}CONFIG")
    file = read_config(Path(config_name)) if config_name else find_config(folder or Path.cwd())
    configured = options.keys() - FLAGS_ONLY
    settings = _from_file(file, configured, command, commands) | _from_environment(environment, configured)
    origins = {key: "flag" for key, action in options.items() if hasattr(namespace, action.dest)}
    for key, setting in settings.items():
        action = options[key]
        if not hasattr(namespace, action.dest):
            setattr(namespace, action.dest, _convert(parser, action, setting, defaults[action.dest]))
            origins[key] = setting.origin
    for dest, default in defaults.items():
        if not hasattr(namespace, dest):
            setattr(namespace, dest, default)
    if show:
        with open_output("-") as stream:
            stream.writelines(_shown(options, namespace, origins))
        return None
    missing = [f"--{name}" for name in required if name not in origins]
    if missing:
        parser.error(f"the following arguments are required: {', '.join(missing)}")
    return namespace


def find_config(folder: Path) -> ConfigFile:
    """The configuration that holds in ``folder``: its own, or that of the nearest folder above that has one."""
    for place in (folder, *folder.parents):
        for name in ("wheelproof.toml", "pyproject.toml"):
            path = place / name
            # A pyproject.toml that never says "wheelproof" is somebody else's, well-formed or not.
            if path.is_file() and (name != "pyproject.toml" or b"wheelproof" in _bytes_of(path)):
                table = _table_of(path)
                if table is not None:
                    return ConfigFile(path, table)
    return ConfigFile(None, {})


def read_config(path: Path) -> ConfigFile:
    """The configuration in this very file. Raises UsageError when there is none."""
    table = _table_of(path)
    if table is None:
        raise UsageError(f"{path} has no table [tool.wheelproof]")
    return ConfigFile(path, table)


def _bytes_of(path: Path) -> bytes:
    try:
        content = read_start(path, LARGEST_FILE + 1, given=True)
    except OSError as error:
        raise UsageError(f"the configuration file {path} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_FILE:
        raise UsageError(f"the configuration file {path} is too large", expected=f"at most {LARGEST_FILE} bytes")
    return content


def _table_of(path: Path) -> Mapping[str, Any] | None:
    import tomllib  # most runs have no configuration file

    try:
        document = tomllib.loads(_bytes_of(path).decode())
    except (ValueError, RecursionError) as error:  # malformed TOML and malformed UTF-8 are both ValueErrors
        raise UsageError(f"the configuration file {path} is not valid TOML: {error}") from error
    if path.name != "pyproject.toml":
        return document
    tool = document.get("tool", {})
    table = tool.get("wheelproof") if isinstance(tool, dict) else None
    if table is not None and not isinstance(table, dict):
        raise UsageError(f"tool.wheelproof in {path} is not a table")
    return table


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
    for part in command.split():  # "pins check" is the table pins.check
        own = own.get(part, {})
        if not isinstance(own, dict):
            raise UsageError(f"{part} in {file.path} is a value", expected=f"a table of `wheelproof {command}`")
    for key in own:
        if key not in options:
            raise _unknown_key(f"{command}.{key}", file, {f"{command}.{option}" for option in options})
    found = {key: Setting(value, f"{key} in {file.path}") for key, value in file.table.items() if key in shared}
    found |= {key: Setting(value, f"{command}.{key} in {file.path}") for key, value in own.items()}
    return {key: setting for key, setting in found.items() if key in options}


def _unknown_key(key: str, file: ConfigFile, known: Collection[str]) -> UsageError:
    nearest = get_close_matches(key, known, n=1)
    hint = f"did you mean {nearest[0]}?" if nearest else f"known are {', '.join(sorted(known))}"
    return UsageError(f"the configuration file {file.path} has the unknown key {key!r}", hint=hint)


def _from_environment(environment: Mapping[str, str], options: Collection[str]) -> dict[str, Setting]:
    """The settings of this command in the environment; an empty variable counts as unset.

    A variable that no option has may belong to another command, or to somebody else (an image's WHEELPROOF_VERSION):
    only one that almost is an option's name is taken for a mistake.
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


def _convert(parser: CommandParser, action: argparse.Action, setting: Setting, default: object) -> object:
    """The value of an option that is set from elsewhere, made by the option's own type, choices and action."""
    scratch = argparse.Namespace()
    flag = next(option for option in action.option_strings if option.startswith("--"))
    try:
        for option_string, value in _uses(action, flag, setting.value):
            action(parser, scratch, value, option_string)
    except WheelproofError as error:
        raise UsageError(f"{setting.origin}: {error.what}", expected=error.expected, hint=error.hint) from error
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise UsageError(f"{setting.origin}: {setting.value!r} is no value of {flag}: {error}") from error
    return getattr(scratch, action.dest, default)


def _uses(action: argparse.Action, flag: str, value: object) -> Iterator[tuple[str, Any]]:
    """The flags, each with its converted argument, that a command line would hold for this value."""
    if action.nargs == 0:
        if isinstance(value, str):
            value = WORDS.get(value.lower(), int(value) if value.isdecimal() else value)
        if not isinstance(value, bool) and not (isinstance(value, int) and _repeats(action)):
            raise ValueError("expected true or false" + (", or how often" if _repeats(action) else ""))
        if isinstance(action, argparse.BooleanOptionalAction):
            yield (flag if value else f"--no-{flag[2:]}"), []
        else:
            yield from [(flag, [])] * min(int(value), 9)
        return
    many = _repeats(action) or action.nargs in {"+", "*"}
    items = value if many and isinstance(value, list) else [value]
    if many and isinstance(value, str):
        items = value.split(",")
    converted = [_item(action, item) for item in items]
    if action.nargs in {"+", "*"}:
        yield flag, converted
    else:
        yield from ((flag, item) for item in converted)


def _repeats(action: argparse.Action) -> bool:
    """True for an option that may be given more than once and adds up. argparse keeps its action classes to itself."""
    return isinstance(action, ListAction) or type(action).__name__ in {"_AppendAction", "_ExtendAction", "_CountAction"}


def _item(action: argparse.Action, value: object) -> object:
    # A number only for an option that is one: `python = 3.10` would arrive as 3.1.
    number = action.type in {int, float} and isinstance(value, int | float) and not isinstance(value, bool)
    if not number and not isinstance(value, str):
        raise TypeError("expected a string in quotes" + (", or a list of them" if _repeats(action) else ""))
    text = str(value).strip()
    converted = action.type(text) if callable(action.type) else text
    if action.choices is not None and converted not in action.choices:
        raise ValueError(f"choose from {', '.join(map(str, action.choices))}")
    return converted


def _shown(
    options: Mapping[str, argparse.Action], namespace: argparse.Namespace, origins: Mapping[str, str]
) -> list[str]:
    """One line per option: its value, without the credentials of a URL, and where it came from."""
    lines = []
    for key, action in sorted(options.items()):
        if key not in FLAGS_ONLY:
            value = re.sub(r"://[^/\s]*@", "://***@", repr(getattr(namespace, action.dest)))
            lines.append(f"{key} = {value}  # {origins.get(key, 'default')}\n")
    return lines
