"""The options of installers and their effects, from the table ``install_commands``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from wheel_checks.data import load


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a command."""

    effect: str  # as the table describes it
    takes_value: bool  # by default the next word


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
