"""What a driver supports, and which GPU a name means: the dated tables, and what the facts say in their place."""

import re
from dataclasses import dataclass
from functools import cache

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.gpu.drivers import newest_cuda
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import KernelDriver
from wheel_checks.facts.host.probes import CudaProbe, NvmlProbe, TorchProbe
from wheel_checks.facts.host.software import Loader
from wheel_checks.model import Unavailable

# CUDA_ERROR_STUB_LIBRARY, and the two of a libcuda that does not fit the kernel's driver (SYSTEM_DRIVER_MISMATCH,
# COMPAT_NOT_SUPPORTED_ON_DEVICE): what such a libcuda says of itself is not what the driver can do.
_MISLEADING = {34, 803, 804}

_TOO_OLD = re.compile(r"driver on your system is too old \(found version (\d{4,6})\)", re.ASCII)  # torch's own words
_MAKERS = {"nvidia", "geforce", "tesla"}


@dataclass(frozen=True, slots=True)
class DriverCuda:
    """The latest CUDA that a driver supports: ``version`` "13.0", and where that was learnt.

    ``inferred`` is True when no page of NVIDIA's says so.
    """

    version: str
    source: str
    inferred: bool = False

    @property
    def major(self) -> int:
        """13 of 13.0."""
        return Version(self.version).major


@dataclass(frozen=True, slots=True)
class HostGpu:
    """A GPU of the host. ``sm`` is its compute capability as in sm_90, 0 where the table does not know its name."""

    name: str
    sm: int
    source: str

    @property
    def product(self) -> Product:
        """The GPU as ``gpu_targets.runs_on`` takes it."""
        return Product(self.name, self.sm)


def driver_version(facts: HostFacts) -> tuple[str, str]:
    """The version of the driver and where it was read; ("", "") when nothing says it."""
    if isinstance(facts.driver, KernelDriver) and facts.driver.version:
        return facts.driver.version, "/sys/module/nvidia/version"
    if isinstance(facts.nvml, NvmlProbe) and facts.nvml.driver_version:
        return facts.nvml.driver_version, "NVML"
    if isinstance(facts.loader, Loader):
        for library in facts.loader.cuda_libraries:
            if library.kind == "driver" and library.version:
                return library.version, library.path
    return "", ""


def driver_cuda(facts: HostFacts) -> DriverCuda | None:
    """The latest CUDA that the driver supports: as libcuda itself says, else as torch reports, else from the table;
    None when unknown.
    """
    probe = facts.cuda
    if isinstance(probe, CudaProbe) and probe.driver_cuda > 0 and probe.code not in _MISLEADING:
        return DriverCuda(_cuda_version(probe.driver_cuda), f"cuDriverGetVersion {probe.driver_cuda}")
    said = _TOO_OLD.search(facts.torch.init_error) if isinstance(facts.torch, TorchProbe) else None
    if said:
        return DriverCuda(_cuda_version(int(said[1])), f"torch: {said[0]}")
    version, where = driver_version(facts)
    row = newest_cuda(version)
    if row is None:
        return None
    cuda, inferred = row
    dated = f"table of drivers of {load('drivers')['collected']}{', inferred' if inferred else ''}"
    return DriverCuda(cuda, f"driver {version} in {where}, {dated}", inferred)


def host_gpus(facts: HostFacts) -> tuple[HostGpu, ...]:
    """The NVIDIA GPUs of the host: as CUDA sees them, else NVML, else the PCI bus, where names show the capability."""
    if isinstance(facts.cuda, CudaProbe) and facts.cuda.gpus:
        return tuple(HostGpu(gpu.name, gpu.capability[0] * 10 + gpu.capability[1], "CUDA") for gpu in facts.cuda.gpus)
    if isinstance(facts.nvml, NvmlProbe) and facts.nvml.gpus:
        return tuple(HostGpu(gpu.name, capability_of(gpu.name), "NVML") for gpu in facts.nvml.gpus)
    if isinstance(facts.pci, Unavailable):
        return ()
    devices = [device for device in facts.pci if device.is_nvidia_gpu]
    return tuple(
        HostGpu(device.name or f"{device.vendor}:{device.device}", capability_of(device.name), f"PCI {device.address}")
        for device in devices
    )


def capability_of(name: str) -> int:
    """The compute capability of the product that begins like this name: 90 for "NVIDIA H100 80GB HBM3"; 0 when unknown.

    The longest name of the table wins: an RTX 6000 Ada is not a Quadro RTX 6000.
    """
    words = tuple(word for word in re.findall(r"[a-z0-9]+", name.lower()) if word not in _MAKERS)
    known = _capabilities()
    for length in range(min(len(words), max(map(len, known))), 0, -1):  # a saved host can have a name of megabytes
        if sm := known.get(words[:length]):
            return sm
    return 0


def _cuda_version(number: int) -> str:
    """The version as CUDA encodes it: 12080 is 12.8."""
    return f"{number // 1000}.{number % 1000 // 10}"


@cache
def _capabilities() -> dict[tuple[str, ...], int]:
    """Compute capabilities by the words of all names of the products."""
    found: dict[tuple[str, ...], int] = {}
    for row in load("products")["product"]:
        for name in (row["name"], *row.get("aliases", ())):
            found[tuple(re.findall(r"[a-z0-9]+", name.lower()))] = row["capability"]
    return found
