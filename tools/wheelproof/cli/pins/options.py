"""The options that say which packages are torch's, for every ``wheelproof pins`` command that reads requirements."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from wheelproof.cli.options.output import add_list

if TYPE_CHECKING:  # not for --help
    from wheelproof.pins.policy import Policy


def add_name_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--family``, ``--set`` and ``--package``."""
    parser.add_argument(
        "--set",
        choices=["core", "wide"],
        default="core",
        help="core: torch, torchvision, torchaudio; wide: also torchcodec, triton, nvidia-*-cuNN (default: core)",
    )
    add_list(
        parser, "--family", "NAME", "the family of packages, such as jax or tensorflow (repeatable; default: torch)"
    )
    add_list(parser, "--package", "NAME", "packages matching this name or glob, instead of a set (repeatable)")


def policy_of(arguments: argparse.Namespace, mode: str = "drop", **more: Any) -> Policy:
    """The policy that the options describe. Raises UsageError for a family that there is not."""
    from wheel_checks.facts.pins.families import TORCH, family
    from wheelproof.pins.policy import Mode, NameSet, Policy, names_of

    return Policy(
        Mode(mode),
        NameSet(arguments.set),
        names_of(arguments.package),
        families=tuple(map(family, dict.fromkeys(arguments.family or [TORCH]))),
        **more,
    )
