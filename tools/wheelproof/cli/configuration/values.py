"""The value of an option from elsewhere than the command line, made by the option's own type, choices and action."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from wheel_checks.errors import UsageError, WheelproofError
from wheelproof.cli.options import CommandParser, ListAction

WORDS = {"1": True, "true": True, "yes": True, "on": True, "0": False, "false": False, "no": False, "off": False}


@dataclass(frozen=True, slots=True)
class Setting:
    """A value from outside the command line, and where it was found ("fail-on in /x/wheelproof.toml")."""

    value: object
    origin: str


def convert(parser: CommandParser, action: argparse.Action, setting: Setting, default: object) -> Any:
    """The value of an option that is set from elsewhere, made by the option's own type, choices and action."""
    scratch = argparse.Namespace()
    flag = next(option for option in action.option_strings if option.startswith("--"))
    try:
        for option_string, value in _uses(action, flag, setting.value):
            action(parser, scratch, value, option_string)
    except WheelproofError as error:
        raise UsageError(f"{setting.origin}: {error.what}", expected=error.expected, hint=error.hint) from error
    except (ValueError, TypeError, argparse.ArgumentTypeError) as error:
        raise UsageError(f"{setting.origin}: {setting.value!r} is not a valid value for {flag}: {error}") from error
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
