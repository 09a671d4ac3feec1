"""Machines as people describe them, by product, driver and CPU, completed from the dated tables."""

import re
from collections.abc import Sequence

from wheel_checks.data import load
from wheel_checks.errors import UsageError
from wheel_checks.facts.gpu.drivers import NO_DRIVER, highest_cuda
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.targets.target import this_machine
from wheel_checks.targets.variant_machine import Machine, cpu_of, parse_cpu


def describe_machines(
    gpus: Sequence[Product], drivers: Sequence[str], cpu: str | None, machines: Sequence[str] = ()
) -> tuple[Machine, ...]:
    """Every GPU with every driver; () when nothing is described. ``machines`` are those of ``--platform``, () if none.

    The platform follows from the product, or the CPU; where ``--platform`` says something else, that holds.
    Raises UsageError for a driver or a CPU that the tables do not have.
    """
    if not gpus and not cpu:
        return ()
    name, of_cpu = parse_cpu(cpu) if cpu else ("", "")
    if of_cpu and machines and of_cpu not in machines:
        raise UsageError(
            f"the CPU {name} is not among {', '.join(machines)}", expected="--platform of the same machine"
        )
    here = this_machine().target.machine
    if not gpus:
        return (Machine(of_cpu, name),)
    known = [(driver, cuda_of_driver(driver)) for driver in drivers or (default_driver(),)]
    found = []
    for gpu in gpus:
        usual = of_cpu or gpu.machine
        for machine in [usual] if usual in machines or (usual and not machines) else machines or [here]:
            beside = name if machine == of_cpu else cpu_of(gpu.name, machine)
            found += [
                Machine(machine, beside, gpu.name, gpu.sm, driver if cuda else "", cuda)
                for driver, cuda in ((("", ""),) if gpu.gfx else known)  # AMD's GPUs have no driver of NVIDIA's
            ]
    return tuple(dict.fromkeys(found))


def default_driver() -> str:
    """The driver of a machine that is described by its GPU alone."""
    return str(load("variant_machines")["default_driver"])


def cuda_of_driver(driver: str) -> str:
    """The latest CUDA that a driver supports ("13.0" of "580" and "580.95.05"), "" for "none". Raises UsageError."""
    if driver == NO_DRIVER:
        return ""
    cuda = highest_cuda(f"{driver}.") if re.fullmatch(r"\d{3}(?:\.\d{1,3}){0,2}", driver, re.ASCII) else None
    if cuda is None:
        raise UsageError(
            f"the driver {driver[:100]!r} is unknown",
            expected="a known branch or version, such as 535 or 580.95.05, or none",
        )
    return cuda
