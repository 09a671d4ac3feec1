"""The machines that ``--gpu``, ``--driver`` and ``--cpu`` describe, for choosing among wheel variants."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wheelproof.cli.options import add_list
from wheelproof.cli.rights import SETS, allow_tree

if TYPE_CHECKING:  # only a run that describes a machine needs the tables
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.targets.variant_machine import Machine


def add_platform_option(parser: argparse.ArgumentParser) -> None:
    """Declare ``--platform`` of a command that also has ``--gpu``."""
    add_list(
        parser,
        "--platform",
        "PLATFORM",
        "x86_64, aarch64, manylinux_2_28_aarch64, ... or all (repeatable; default: that of --gpu, else this machine)",
    )
    allow_tree(parser, SETS, "platform")


def add_machine_options(parser: argparse.ArgumentParser) -> None:
    """Declare ``--driver`` and ``--cpu``; ``--gpu`` is the command's own."""
    add_list(
        parser,
        "--driver",
        "VERSION",
        "the driver beside the GPUs, for wheel variants: 535, 580.95.05, none (repeatable; default: 580)",
    )
    parser.add_argument(
        "--cpu",
        metavar="CPU",
        help="the CPU, for wheel variants: x86-64-v4, Grace, Armv8.2-A, ... (default: that of the GPU's product)",
    )
    allow_tree(parser, SETS, "driver", "cpu")


def described_by(arguments: argparse.Namespace, gpus: Sequence[Product]) -> tuple[Machine, ...]:
    """The machines that the options of a command describe, () for none. Raises UsageError for what is not known."""
    if not gpus and not arguments.driver and not arguments.cpu:
        return ()
    from wheelproof.wheels.machine_choice import described_machines

    return described_machines(gpus, arguments.driver, arguments.cpu, arguments.platform)
