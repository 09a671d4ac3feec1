"""The options, settings and variables of installers with their effects, from the table ``install_commands``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from wheel_checks.data import load

OTHER = "other"
FALSE = {"", "0", "false", "no", "off", "n", "f"}  # values of variables and of pip's settings that ask for nothing
_LOGIN = re.compile(r"UV_INDEX_\w+_(?:USERNAME|PASSWORD)")  # of the index with that name


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command."""

    effect: str  # as the table describes it
    takes_value: bool  # by default the next word


UNKNOWN_OPTION = Option(OTHER, takes_value=False)


@cache
def options_of(command: str) -> Mapping[str, Option]:
    """The options of a command such as "uv pip install", by name; rows for longer commands win."""
    rows = [(name, row) for row in load("install_commands")["option"] for name in row["of"]]
    found: dict[str, Option] = {}
    for name, row in sorted(rows, key=lambda named: len(named[0])):
        if f"{command} ".startswith(f"{name} "):
            found |= {text.removesuffix("="): Option(row["effect"], text.endswith("=")) for text in row["names"]}
    return found


def with_effect(command: str, *effects: str) -> frozenset[str]:
    """The options of a command that have one of these effects."""
    return frozenset(name for name, option in options_of(command).items() if option.effect in effects)


def valued(command: str) -> frozenset[str]:
    """The options of a command that take a value."""
    return frozenset(name for name, option in options_of(command).items() if option.takes_value)


def effect_of_setting(key: str) -> str:
    """The effect of a key of uv.toml."""
    return options_of("uv.toml").get(key, UNKNOWN_OPTION).effect


def effect_of_pip(key: str) -> str:
    """The effect of a key of pip.conf, such as "upgrade-strategy"."""
    found = options_of("pip install").get(f"--{key}") or options_of("pip.conf").get(f"--{key}")
    return found.effect if found else OTHER


def effect_of_variable(name: str) -> str:
    """The effect of a variable of uv or pip."""
    if _LOGIN.fullmatch(name):
        return "index"
    if name.startswith("UV_"):
        return options_of("UV_*").get(name, UNKNOWN_OPTION).effect
    known = options_of("PIP_*").get(name)
    return known.effect if known else effect_of_pip(name.removeprefix("PIP_").lower().replace("_", "-"))
