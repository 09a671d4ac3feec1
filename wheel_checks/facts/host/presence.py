"""Whether there is a GPU at all: what is a fault on a GPU server is as it should be on a laptop."""

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import PciDevice
from wheel_checks.model import Unavailable


def shows_gpu(facts: HostFacts) -> bool:
    """Whether files show a GPU of NVIDIA's or its driver. In a container those of the host count."""
    pci, driver, nodes, system = facts.pci, facts.driver, facts.nodes, facts.system
    return (
        (not isinstance(pci, Unavailable) and any(device.is_nvidia_gpu for device in pci))
        or (not isinstance(driver, Unavailable) and bool(driver.version or driver.gpus))
        or (not isinstance(nodes, Unavailable) and any(node.error != "ENOENT" for node in nodes))
        or (not isinstance(system, Unavailable) and bool(system.tegra or system.wsl))
    )


def other_gpus(facts: HostFacts) -> tuple[PciDevice, ...]:
    """The GPUs of AMD's and Intel's on the bus; none when it could not be read."""
    devices = () if isinstance(facts.pci, Unavailable) else facts.pci
    return tuple(device for device in devices if device.maker not in {"", "NVIDIA"})


def gpus_of_build(facts: HostFacts) -> tuple[PciDevice, ...]:
    """The GPUs of the maker for whom the installed torch is built: AMD's for ROCm, Intel's for XPU; none for CUDA."""
    torch = None if isinstance(facts.installed, Unavailable) else facts.installed.torch
    maker = "" if torch is None else "AMD" if torch.hip else "Intel" if torch.xpu else ""
    return tuple(device for device in other_gpus(facts) if device.maker == maker)


def may_have_gpu(facts: HostFacts) -> bool:
    """False when it is known that the host has no NVIDIA GPU: no file shows one, and neither NVML nor CUDA sees one."""
    answered = any(not isinstance(probe, Unavailable) and probe.gpus for probe in (facts.nvml, facts.cuda))
    return answered or isinstance(facts.pci, Unavailable) or shows_gpu(facts)
