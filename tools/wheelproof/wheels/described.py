"""The machines that GPUs, drivers and a CPU describe, and the platforms that follow from them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # only a run that describes a machine needs the tables
    from wheel_checks.facts.gpu.targets import Product
    from wheel_checks.targets.variant_machine import Machine


def machines_of(
    gpus: Sequence[Product], drivers: Sequence[str], cpu: str | None, platforms: Sequence[str]
) -> tuple[Machine, ...]:
    """The machines that the options describe, () if none. Raises UsageError for an unknown value.

    A driver past the end of the table describes no machine: which variant it gets is unknown, and WHL605 says so.
    """
    if not gpus and not drivers and not cpu:
        return ()
    from wheel_checks.facts.gpu.drivers import NO_DRIVER, is_known, parse_driver
    from wheelproof.wheels.machine_choice import described_machines

    known = [driver for driver in map(parse_driver, drivers) if driver == NO_DRIVER or is_known(driver)]
    if drivers and not known:
        return ()
    return described_machines(gpus, known, cpu, platforms)


def platforms_of(platforms: Sequence[str], gpus: Sequence[Product], machines: Sequence[Machine]) -> tuple[str, ...]:
    """The named ``platforms``, else those of the machines and GPUs; () for this host."""
    described = [machine.machine for machine in machines] or [gpu.machine for gpu in gpus if gpu.machine]
    return tuple(platforms) or tuple(dict.fromkeys(described))
