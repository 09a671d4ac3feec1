"""What the tables know of AMD's and Intel's GPUs, and what the facts of a host say of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from wheel_checks.data import load
from wheel_checks.facts.gpu import amd
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import KfdGpu, OtherDrivers, PciDevice
from wheel_checks.facts.host.presence import gpus_of_build, may_have_gpu, other_gpus

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
_OVERRIDE = re.compile(r"(\d{1,2})\.(\d{1,2})\.(\d{1,2})", re.ASCII)


def kfd_gpus(facts: HostFacts) -> tuple[KfdGpu, ...]:
    """AMD's GPUs as amdkfd lists them; none when it does not run, or was not read."""
    return facts.other_drivers.gpus if isinstance(facts.other_drivers, OtherDrivers) else ()


def overridden_target(facts: HostFacts) -> str:
    """The target that HSA_OVERRIDE_GFX_VERSION puts in place of each GPU's: "10.3.0" is "gfx1030"; "" if none.

    Source: ROCR-Runtime, which reads it as MAJOR.MINOR.STEPPING.
    """
    match = _OVERRIDE.fullmatch(facts.variables.get(OVERRIDE, "").strip())
    return f"gfx{int(match[1])}{int(match[2]):x}{int(match[3]):x}" if match else ""


def has_code(architectures: tuple[str, ...], target: str) -> bool:
    """Whether code for one of these targets runs on the GPU ``target``."""
    return any(not amd.refuses(label, target) for label in architectures)


def rocm_build(target: str) -> Mapping[str, Any] | None:
    """The latest torch build for ROCm that the table knows with code for a target; None if none exists."""
    return next((row for row in load("other_gpus")["rocm"] if has_code(tuple(row["targets"]), target)), None)


def intel_row(device: PciDevice) -> Mapping[str, Any] | None:
    """The row of the table for a GPU of Intel's; None for one that torch for XPU is not known to use."""
    rows = load("other_gpus")["intel"] if device.maker == "Intel" else ()
    return next((row for row in rows if device.device.lower() in row["devices"]), None)


@dataclass(frozen=True, slots=True)
class BuildOfOthers:
    """A torch build that the table knows for a GPU of AMD's or Intel's: ``backend`` as uv calls it ("rocm7.2")."""

    torch: str
    backend: str
    device: PciDevice


def build_of_others(facts: HostFacts) -> BuildOfOthers | None:
    """The build for the GPUs of a host without one of NVIDIA's; None where the table knows none.

    A GPU of Intel's that is part of a CPU counts only where torch is built for it already: nearly every laptop has one.
    """
    if may_have_gpu(facts):
        return None
    for device in other_gpus(facts):
        if device.maker == "AMD":
            target = next((gpu.target for gpu in kfd_gpus(facts) if gpu.device == device.device.lower()), "")
            row = rocm_build(target) if target else None
            if row:
                return BuildOfOthers(row["torch"], row["backend"], device)
        elif (known := intel_row(device)) and (known["discrete"] or gpus_of_build(facts)):
            row = load("other_gpus")["xpu"]
            return BuildOfOthers(row["torch"], row["backend"], device)
    return None
