"""Everything that the doctor knows about one host: what its rules judge."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from wheel_checks.facts.host.gpu import DeviceNode, KernelDriver, OtherDrivers, PciDevice, Services
from wheel_checks.facts.host.machine import Container, Limits, System
from wheel_checks.facts.host.network import InfiniBandPort
from wheel_checks.facts.host.probes import Counterfactual, CudaProbe, KernelProbe, NvmlProbe, TorchProbe
from wheel_checks.facts.host.software import IndexSetting, Installed, Interpreter, Loader, TritonFacts
from wheel_checks.model import Unavailable

_NOT_READ = Unavailable("it was not read")


@dataclass(frozen=True, slots=True)
class ProbedFacts:
    """What the probe of a plug-in says, by name."""

    values: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class HostFacts:
    """One host. A section that could not be read is ``Unavailable``."""

    taken: str = ""  # when this was read: UTC, ISO 8601
    system: System | Unavailable = _NOT_READ  # operating system and firmware
    container: Container | Unavailable = _NOT_READ  # the container that doctor runs in
    limits: Limits | Unavailable = _NOT_READ  # limits of resources
    pci: tuple[PciDevice, ...] | Unavailable = _NOT_READ  # accelerators on the PCI bus
    driver: KernelDriver | Unavailable = _NOT_READ  # NVIDIA kernel driver
    nodes: tuple[DeviceNode, ...] | Unavailable = _NOT_READ  # device files
    services: Services | Unavailable = _NOT_READ  # services that GPUs need
    other_drivers: OtherDrivers | Unavailable = _NOT_READ  # drivers of other vendors
    infiniband: tuple[InfiniBandPort, ...] | Unavailable = _NOT_READ  # its ports
    variables: Mapping[str, str] = field(default_factory=dict)  # environment variables that matter, and no others
    interpreter: Interpreter | Unavailable = _NOT_READ  # the target Python
    installed: Installed | Unavailable = _NOT_READ  # packages of that Python
    loader: Loader | Unavailable = _NOT_READ  # what the dynamic loader finds
    triton: TritonFacts | Unavailable | None = _NOT_READ  # None if Triton is not installed
    indexes: tuple[IndexSetting, ...] | Unavailable = _NOT_READ  # settings of package indexes
    nvml: NvmlProbe | Unavailable = _NOT_READ  # GPUs as NVML sees them
    cuda: CudaProbe | Unavailable = _NOT_READ  # CUDA driver API, called in a child
    counterfactuals: tuple[Counterfactual, ...] = ()  # the same call with one thing changed
    torch: TorchProbe | Unavailable = _NOT_READ  # its import, in a child
    kernel: KernelProbe | Unavailable = _NOT_READ  # a small kernel, run in a child
    seconds: Mapping[str, float] = field(default_factory=dict)  # by section
    # sections whose reader crashed or timed out, and what happened
    unread: Mapping[str, str] = field(default_factory=dict)
    # file and line that set a variable ("/etc/environment:3"), if found
    variables_origin: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, ProbedFacts | Unavailable] = field(default_factory=dict)  # of plug-ins, by name
