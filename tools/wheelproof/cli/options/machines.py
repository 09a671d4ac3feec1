"""The machines that ``--gpu``, ``--driver`` and ``--cpu`` describe."""

from __future__ import annotations

import argparse

from wheelproof.cli.options.output import add_list
from wheelproof.cli.options.rights import SETS, allow_tree


def add_platform_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--platform`` of a command that also has ``--gpu``."""
    add_list(
        parser,
        "--platform",
        "PLATFORM",
        "the target platform: x86_64, aarch64, manylinux_2_28_aarch64, ... or all (repeatable; default: that of --gpu, "
        "else this host)",
    )
    allow_tree(parser, SETS, "platform")


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--driver`` and ``--cpu``; ``--gpu`` is the command's own."""
    add_list(
        parser,
        "--driver",
        "VERSION",
        "the driver it must run with: 535, 580.95.05; none: it must import on a host without a driver (repeatable; "
        "default: not checked, 580 for wheel variants)",
    )
    parser.add_argument(
        "--cpu",
        metavar="CPU",
        help="the CPU to select wheel variants for: x86-64-v4, Grace, Armv8.2-A, ... (default: that of the GPU's "
        "product)",
    )
    allow_tree(parser, SETS, "driver", "cpu")
