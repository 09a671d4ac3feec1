"""The options that say which packages are torch's, for every ``wheelproof pins`` command that reads requirements."""

from __future__ import annotations

import argparse

from wheelproof.cli.options import add_list


def add_name_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--set`` and ``--package``."""
    parser.add_argument(
        "--set",
        choices=["core", "wide"],
        default="core",
        help="core: torch, torchvision, torchaudio; wide: also torchcodec, triton, nvidia-*-cuNN (default: core)",
    )
    add_list(parser, "--package", "NAME", "these projects instead of a set (repeatable)")
