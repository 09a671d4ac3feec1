"""The machines that ``--gpu``, ``--driver`` and ``--cpu`` describe."""

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
        "the driver that it must run with: 535, 580.95.05 (repeatable; none: no driver; default: not judged, 580 for "
        "wheel variants)",
    )
    parser.add_argument(
        "--cpu",
        metavar="CPU",
        help="the CPU, for wheel variants: x86-64-v4, Grace, Armv8.2-A, ... (default: that of the GPU's product)",
    )
    allow_tree(parser, SETS, "driver", "cpu")


def described_by(arguments: argparse.Namespace, gpus: Sequence[Product]) -> tuple[Machine, ...]:
    """The machines that the options of a command describe, () for none. Raises UsageError for what is not known.

    A driver past the end of the table describes no machine: which variant it gets is not known, and WHL605 says so.
    """
    if not gpus and not arguments.driver and not arguments.cpu:
        return ()
    from wheel_checks.facts.gpu.drivers import NO_DRIVER, is_known, parse_driver
    from wheelproof.wheels.machine_choice import described_machines

    drivers = [driver for driver in map(parse_driver, arguments.driver) if driver == NO_DRIVER or is_known(driver)]
    if arguments.driver and not drivers:
        return ()
    return described_machines(gpus, drivers, arguments.cpu, arguments.platform)


def platforms_of(
    arguments: argparse.Namespace, gpus: Sequence[Product], machines: Sequence[Machine]
) -> tuple[str, ...]:
    """The platforms that were typed, else those of the machines and GPUs; () for this machine."""
    described = [machine.machine for machine in machines] or [gpu.machine for gpu in gpus if gpu.machine]
    return tuple(arguments.platform) or tuple(dict.fromkeys(described))
