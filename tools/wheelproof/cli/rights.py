"""What the configuration file of a tree may do to an option: nothing, unless the option declares it.

A tree is anybody's: a checkout, an archive, a folder that others share. Its file may say what is judged and what is
expected. What is run, written, contacted, read elsewhere or shown is decided by the user alone.
"""

import argparse
from dataclasses import dataclass
from enum import StrEnum

_ATTRIBUTE = "right_of_a_tree"


class Effect(StrEnum):
    """What a value of a tree does. ``ADDS`` is for lists of rules, ``RAISES`` for choices with an order."""

    REFUSED = "refused"
    SETS = "sets it"
    ADDS = "adds to it"
    RAISES = "makes it stricter"
    NAMES_FILES = "names files of the tree"


@dataclass(frozen=True, slots=True)
class Right:
    """The right of a tree. ``order`` are the values of an option that a tree may raise, the strictest last."""

    effect: Effect = Effect.REFUSED
    order: tuple[str, ...] = ()


REFUSED, SETS, ADDS, NAMES_FILES = map(Right, (Effect.REFUSED, Effect.SETS, Effect.ADDS, Effect.NAMES_FILES))


def raises(*order: str) -> Right:
    """The right to choose what is stricter than what holds without the tree; ``order`` has the strictest last."""
    return Right(Effect.RAISES, order)


def allow_tree(parser: argparse.ArgumentParser, right: Right, *keys: str) -> None:
    """Declare that the configuration file of a tree has this right over the options with these keys."""
    for key in keys:
        setattr(parser._option_string_actions[f"--{key}"], _ATTRIBUTE, right)  # noqa: SLF001  # shown by no method


def right_of(action: argparse.Action) -> Right:
    """The right of a tree over an option: ``REFUSED`` unless the option declares another."""
    right: Right = getattr(action, _ATTRIBUTE, REFUSED)
    return right
