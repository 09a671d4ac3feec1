"""Whether the installed torch fits this host: its accelerator, its driver, its GPUs."""

import re

from wheel_checks.facts.gpu.targets import runs_on
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.software import Package, TorchFiles
from wheel_checks.facts.host.tables import DriverCuda, HostGpu, driver_cuda, host_gpus
from wheel_checks.facts.host.torch.choice import machine_of
from wheel_checks.model import Unavailable

_THOR, _CUDA_OF_THOR = 110, 13
_TURING = 75


def torch_files(facts: HostFacts) -> TorchFiles | None:
    """The torch on disk, None if none exists, or it is unknown."""
    return None if isinstance(facts.installed, Unavailable) else facts.installed.torch


def torch_package(facts: HostFacts) -> Package | None:
    """The distribution of torch; its version is that of METADATA, which may hide the build."""
    return None if isinstance(facts.installed, Unavailable) else facts.installed.named("torch")


def is_cpu_build(torch: TorchFiles) -> bool:
    """Whether it is built for no accelerator."""
    return not (torch.cuda or torch.hip or torch.xpu)


def cuda_major(version: str) -> int:
    """13 of "13.0" and of "cu130"; 0 for what names no CUDA."""
    found = re.match(r"(?:cu)?(\d{2})", version)
    return int(found[1]) if found else 0


def driver_behind(facts: HostFacts, torch: TorchFiles) -> DriverCuda | None:
    """What the driver supports, where that is an older major CUDA version than torch is built for."""
    driver = driver_cuda(facts)
    return driver if driver and torch.cuda and driver.major < cuda_major(torch.cuda) else None


def gpus_without_code(facts: HostFacts, torch: TorchFiles) -> tuple[HostGpu, ...]:
    """The GPUs, each kind once, for which this torch has no code; none when its code is unknown.

    A GPU on which it has computed has code.
    """
    if not torch.cuda or not torch.architectures:
        return ()
    gpus = [gpu for gpu in host_gpus(facts) if gpu.sm]
    if isinstance(facts.torch, TorchProbe) and facts.torch.computes == "":
        gpus = [gpu for gpu in gpus if gpu.sm != gpus[0].sm]
    return tuple(dict.fromkeys(gpu for gpu in gpus if runs_on(torch.architectures, gpu.product).how == "none"))


def gpus_of_entry(facts: HostFacts, torch: TorchFiles, entry: str) -> list[HostGpu]:
    """The GPUs without code for which this entry of the catalogue (see :func:`gap_entry`) speaks."""
    return [gpu for gpu in gpus_without_code(facts, torch) if gap_entry(facts, torch, gpu) == entry]


def gap_entry(facts: HostFacts, torch: TorchFiles, gpu: HostGpu) -> str:
    """The entry of the catalogue for a GPU without code: A11 Thor, A12 T4G, G01 older than all code, G02 otherwise."""
    if gpu.sm == _THOR and cuda_major(torch.cuda) < _CUDA_OF_THOR:
        return "A11"
    if gpu.sm == _TURING and machine_of(facts) == "aarch64":
        return "A12"
    numbers = [int(number) for label in torch.architectures for number in re.findall(r"_(\d{2,3})", label)]
    return "G01" if numbers and gpu.sm < min(numbers) else "G02"


def misfit(facts: HostFacts) -> str:
    """How the installed torch does not fit, as the end of a sentence; "" when nothing is wrong with it."""
    torch = torch_files(facts)
    if torch is None:
        return ""
    if is_cpu_build(torch):
        return "is a CPU-only build"
    if driver := driver_behind(facts, torch):
        return f"is built for CUDA {torch.cuda}, but the driver supports {driver.version}"
    if gpus := gpus_without_code(facts, torch):
        return f"has no code for {', '.join(str(gpu.product) for gpu in gpus)}"
    return ""
