"""What rules of several themes ask of the facts of a host, and show as evidence."""

import re

from wheel_checks.commands import NoCommand, Step, Unset, Word, export
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import PciDevice
from wheel_checks.facts.host.log.symptoms import symptoms
from wheel_checks.facts.host.machine import Container
from wheel_checks.facts.host.probes import CudaProbe, NvmlGpu, NvmlProbe
from wheel_checks.model import Evidence, Unavailable, need

DEBIAN = {"debian", "ubuntu", "pop", "linuxmint"}
RED_HAT = {"rhel", "rocky", "almalinux", "fedora", "centos", "amzn"}
_DRIVER_VERSION = re.compile(r"\d+(?:\.\d+)*", re.ASCII)
_KERNEL_RELEASE = re.compile(r"\d[\w.+~-]*", re.ASCII)
TORCH_FAILS = ("torch:unavailable", "torch:init", "kernel:failed")
NO_CUDA = ("nvml:*", "cuda:*", *TORCH_FAILS)


def in_container(facts: HostFacts) -> bool:
    """Whether it is known that a container is looked at from inside."""
    return not isinstance(facts.container, Unavailable) and bool(facts.container.kind)


def gpus_on_bus(facts: HostFacts) -> list[PciDevice]:
    """NVIDIA's GPUs on the PCI bus; the rule is skipped when the bus could not be read."""
    return [device for device in need(facts.pci) if device.is_nvidia_gpu]


def nvml_gpus(facts: HostFacts) -> tuple[NvmlGpu, ...]:
    """The GPUs that NVML lists, none when it was not asked."""
    return facts.nvml.gpus if isinstance(facts.nvml, NvmlProbe) else ()


def cuda_code(facts: HostFacts) -> int | None:
    """What cuInit returned, None when it was not called."""
    return facts.cuda.code if isinstance(facts.cuda, CudaProbe) else None


def fails(facts: HostFacts, *names: str) -> bool:
    """Whether one of these symptoms is seen; a name may end in ``:*``."""
    seen = symptoms(facts)
    return any(
        symptom == name or (name.endswith("*") and symptom.startswith(name[:-1])) for name in names for symptom in seen
    )


def pci_shown(device: PciDevice) -> Evidence:
    """A GPU on the bus."""
    return Evidence(device.name or "NVIDIA GPU", f"{device.vendor}:{device.device} at {device.address}", "/sys/bus/pci")


def container_shown(container: Container) -> Evidence:
    """The kind of a container, and what it was recognised by."""
    return Evidence("container", container.kind, ", ".join(container.marks))


def kernel_said(facts: HostFacts, pattern: str, most: int = 1) -> list[Evidence]:
    """The last lines of the kernel's log that match; case counts."""
    said = [line for line in need(facts.driver).kernel_messages if re.search(pattern, line)]
    return [Evidence("kernel", line) for line in said[-most:]]


def variable_shown(facts: HostFacts, name: str) -> Evidence:
    """A variable that is set, and where its value comes from."""
    return Evidence(name, facts.variables[name], facts.variables_origin.get(name, "environment"))


def of_driver(version: str, name: str) -> Word:
    """A package of the driver's version: ``{branch}`` and ``{version}`` in its name are filled in."""
    if not _DRIVER_VERSION.fullmatch(version):
        return NoCommand(f"{version!a} is not a driver version")
    return name.format(branch=version.partition(".")[0], version=version)


def of_kernel(release: str, name: str) -> Word:
    """A package, or an argument, of this release of the kernel: ``{release}`` in its name is filled in."""
    if not _KERNEL_RELEASE.fullmatch(release):
        return NoCommand(f"{release!a} is not a kernel release")
    return name.format(release=release)


def library_path(facts: HostFacts) -> list[str]:
    """The entries of LD_LIBRARY_PATH."""
    return [entry for entry in re.split("[:;]", facts.variables.get("LD_LIBRARY_PATH", "")) if entry]


def without_entries(facts: HostFacts, folders: set[str]) -> Step:
    """The command that takes these folders out of LD_LIBRARY_PATH, or the whole variable when nothing is left."""
    left = [entry for entry in library_path(facts) if entry.rstrip("/") not in folders]
    return export("LD_LIBRARY_PATH", ":".join(left)) if left else Unset(("LD_LIBRARY_PATH",))
