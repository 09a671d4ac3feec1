"""Everything that the doctor knows about one host: what its rules judge."""

from __future__ import annotations

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
    """One host. ``variables`` are the environment variables that matter, and no others.

    ``taken`` is when this was read, UTC in ISO 8601. ``seconds`` is by section. ``unread`` are the sections whose
    reader crashed or ran out of time, and what happened. ``variables_origin`` says which file sets a variable, and in
    which line ("/etc/environment:3"), where that was found. ``probes`` are those of plug-ins, by their names.
    """

    taken: str = ""
    system: System | Unavailable = _NOT_READ
    container: Container | Unavailable = _NOT_READ
    limits: Limits | Unavailable = _NOT_READ
    pci: tuple[PciDevice, ...] | Unavailable = _NOT_READ
    driver: KernelDriver | Unavailable = _NOT_READ
    nodes: tuple[DeviceNode, ...] | Unavailable = _NOT_READ
    services: Services | Unavailable = _NOT_READ
    other_drivers: OtherDrivers | Unavailable = _NOT_READ
    infiniband: tuple[InfiniBandPort, ...] | Unavailable = _NOT_READ
    variables: Mapping[str, str] = field(default_factory=dict)
    interpreter: Interpreter | Unavailable = _NOT_READ
    installed: Installed | Unavailable = _NOT_READ
    loader: Loader | Unavailable = _NOT_READ
    triton: TritonFacts | Unavailable | None = _NOT_READ
    indexes: tuple[IndexSetting, ...] | Unavailable = _NOT_READ
    nvml: NvmlProbe | Unavailable = _NOT_READ
    cuda: CudaProbe | Unavailable = _NOT_READ
    counterfactuals: tuple[Counterfactual, ...] = ()
    torch: TorchProbe | Unavailable = _NOT_READ
    kernel: KernelProbe | Unavailable = _NOT_READ
    seconds: Mapping[str, float] = field(default_factory=dict)
    unread: Mapping[str, str] = field(default_factory=dict)
    variables_origin: Mapping[str, str] = field(default_factory=dict)
    probes: Mapping[str, ProbedFacts | Unavailable] = field(default_factory=dict)
