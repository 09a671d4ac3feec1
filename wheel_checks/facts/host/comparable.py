"""What of a host can be compared with other hosts: short texts by name, for ``wheelproof report merge``.

Omitted is what differs between any two hosts (addresses, UUIDs, free memory, times, counts), or what the jobs of a
scheduler set. The NVLink domain is there to group hosts by it. Users and hosts are redacted, so that the same path
below two home folders is the same.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import KernelDriver
from wheel_checks.facts.host.machine import System
from wheel_checks.facts.host.network import InfiniBandPort
from wheel_checks.facts.host.probes import NvmlGpu, NvmlProbe
from wheel_checks.facts.host.redaction import redact
from wheel_checks.facts.host.software import Installed
from wheel_checks.model import Unavailable
from wheel_checks.phrases import plural

_COMPUTE_MODES = {0: "default", 1: "exclusive thread", 2: "prohibited", 3: "exclusive process"}  # nvmlComputeMode_t
_FABRIC_STATES = {0: "not supported", 1: "not started", 2: "in progress", 3: "completed"}  # NVML_GPU_FABRIC_STATE_*
_BRAKES = {  # nvmlClocksEventReason*
    0x8: "the hardware",
    0x20: "heat (driver)",
    0x40: "heat (hardware)",
    0x80: "the power brake",
    0x400: "reliability",
}
# XIDs whose only cause, or first, is a program: NVIDIA, "XID Errors", table of causes ("User app")
_OF_PROGRAMS = {13, 31, 43, 45}
_PACKAGES = ("torchvision", "torchaudio", "triton", "nvidia-cudnn-", "nvidia-nccl-")  # names, or their beginnings
_VARIABLES = ("CUDA", "NVIDIA_", "NCCL_", "NVSHMEM_", "CUDNN_", "TRITON_", "TORCH", "PYTORCH_", "LD_")
_OF_IMAGES = "NVIDIA_REQUIRE_"  # a page of conditions that images of CUDA carry for the container runtime


def comparable(facts: HostFacts) -> dict[str, str | None]:
    """One text per name, in the order in which people look at them: the GPUs and their driver first.

    None is what could not be read; "none" what is known not to be there. A variable or a distribution that the host
    does not have is absent.
    """
    facts = redact(facts)
    return {**dict(_gpus(facts)), **dict(_machine(facts)), **dict(_software(facts))}


def _gpus(facts: HostFacts) -> Iterator[tuple[str, str | None]]:
    yield "GPUs", _gpu_names(facts)
    driver = None if isinstance(facts.driver, Unavailable) else facts.driver
    yield "driver", None if driver is None else driver.version or "none"
    yield "kernel module", _module_kind(driver)
    version = 0 if isinstance(facts.cuda, Unavailable) else facts.cuda.driver_cuda
    yield "CUDA of the driver", f"{version // 1000}.{version % 1000 // 10}" if version else None
    yield "modules", None if driver is None else _listed(driver.modules)
    gpus = facts.nvml.gpus if isinstance(facts.nvml, NvmlProbe) else ()
    yield "VBIOS", _each(gpu.vbios or None for gpu in gpus)
    yield "GPU memory", _each(_size(gpu.memory_total) for gpu in gpus)
    yield "ECC", _each(_on_off(gpu.ecc_enabled) for gpu in gpus)
    yield "MIG", _each(_on_off(gpu.mig_enabled) for gpu in gpus)
    yield "compute mode", _each(_named(_COMPUTE_MODES, gpu.compute_mode) for gpu in gpus)
    yield "power limit", _each(f"{gpu.power_limit // 1000} W" if gpu.power_limit else None for gpu in gpus)
    yield from _links(gpus)
    yield "XIDs", None if driver is None or driver.xids is None else _faults(driver.xids)
    yield "fabric", _each(_named(_FABRIC_STATES, gpu.fabric_state) for gpu in gpus)
    services = None if isinstance(facts.services, Unavailable) else facts.services
    yield "fabric manager", (services.fabric_manager or "none") if services else None
    yield "services", _listed(services.processes) if services else None


def _links(gpus: Sequence[NvmlGpu]) -> Iterator[tuple[str, str | None]]:
    """What of the GPUs' links, clocks and memory should be the same everywhere; counts of what is harmless are not."""
    yield "NVLinks", _each(_nvlinks(gpu) for gpu in gpus)
    yield "NVLink errors", _each(_on_links(gpu.nvlinks_faulty) for gpu in gpus)
    yield "NVLink domain", _each(_domain(gpu) for gpu in gpus)
    yield "PCIe", _each(_pcie(gpu) for gpu in gpus)
    yield "SM clock", _each(f"{gpu.sm_clock} MHz" if gpu.sm_clock else None for gpu in gpus)
    yield "throttled by", _each(_throttled(gpu.clock_reasons) for gpu in gpus)
    yield "uncorrectable ECC errors", _each(_some(gpu.ecc_uncorrected) for gpu in gpus)
    yield "rows remapped", _each(_remapped(gpu) for gpu in gpus)
    yield "GSP firmware", _each(gpu.gsp_firmware or None for gpu in gpus)


def _nvlinks(gpu: NvmlGpu) -> str | None:
    if gpu.nvlinks is None:
        return None
    speed = f" at {gpu.nvlink_speed / 1000:g} GB/s" if gpu.nvlink_speed else ""
    return f"{gpu.nvlinks} of {gpu.nvlinks_total} up{speed}"


def _on_links(count: int | None) -> str | None:
    return None if count is None else f"on {plural(count, 'link')}" if count else "none"


def _domain(gpu: NvmlGpu) -> str | None:
    """The cluster and the clique of a GPU; "none" where its fabric has no cluster, as within one HGX board."""
    if gpu.fabric_state is None:
        return None
    return f"{gpu.fabric_cluster}.{gpu.fabric_clique}" if gpu.fabric_cluster else "none"


def _pcie(gpu: NvmlGpu) -> str | None:
    if gpu.pcie_generation is None or gpu.pcie_width is None:
        return None
    of = f" of {gpu.pcie_width_most}" if gpu.pcie_width_most and gpu.pcie_width_most > gpu.pcie_width else ""
    return f"generation {gpu.pcie_generation} x {gpu.pcie_width}{of}"


def _throttled(mask: int | None) -> str | None:
    """What keeps the clock low and should not; idleness, settings of clocks and the power limit are usual."""
    if mask is None:
        return None
    return ", ".join(name for bit, name in _BRAKES.items() if mask & bit) or "nothing"


def _some(count: int | None) -> str | None:
    return None if count is None else "some" if count else "none"


def _remapped(gpu: NvmlGpu) -> str | None:
    if gpu.remap_failure or gpu.remap_pending:
        return "one failed" if gpu.remap_failure else "pending"
    if gpu.rows_uncorrected is None:
        return None
    return "after uncorrectable errors" if gpu.rows_uncorrected else "none"


def _faults(xids: Sequence[int]) -> str:
    """The XIDs but those that a program causes by itself."""
    return ", ".join(str(xid) for xid in xids if xid not in _OF_PROGRAMS) or "none"


def _ports(facts: HostFacts) -> Iterator[tuple[str, str | None]]:
    ports = None if isinstance(facts.infiniband, Unavailable) else facts.infiniband
    yield "InfiniBand", None if ports is None else _counted(map(_port, ports)) or "none"
    known = [port.firmware for port in ports or () if port.firmware]
    yield "InfiniBand firmware", _counted(known) if known else None if ports is None or ports else "none"


def _port(port: InfiniBandPort) -> str:
    if port.state != "ACTIVE":
        return port.state.lower() or "of unknown state"
    rate = port.rate.replace(" Gb/sec", " Gb/s") or "of unknown rate"
    return f"{rate} over {port.layer}" if port.layer and port.layer != "InfiniBand" else rate


def _machine(facts: HostFacts) -> Iterator[tuple[str, str | None]]:
    system = facts.system if isinstance(facts.system, System) else None
    yield "machine", system.machine if system else None
    yield "operating system", system.os_name if system else None
    yield "kernel", system.kernel if system else None
    yield "C library", (" ".join(system.libc).strip() or None) if system else None
    yield "page size", f"{system.page_size >> 10} KiB" if system else None
    yield "memory", _size(system.memory_bytes) if system else None
    yield "firmware", (system.firmware or None) if system else None
    yield from _ports(facts)
    yield "container", None if isinstance(facts.container, Unavailable) else facts.container.kind or "none"
    limits = None if isinstance(facts.limits, Unavailable) else facts.limits
    yield "/dev/shm", _size(limits.shm_bytes) if limits else None  # noqa: S108  # a name to read, no file to write
    yield "locked memory", (_size(limits.memlock_bytes) or "unlimited") if limits else None


def _software(facts: HostFacts) -> Iterator[tuple[str, str | None]]:
    yield "Python", None if isinstance(facts.interpreter, Unavailable) else facts.interpreter.version
    installed = facts.installed if isinstance(facts.installed, Installed) else None
    yield "torch", (installed.torch.version if installed.torch else "none") if installed else None
    for package in installed.packages if installed else ():
        if package.name.startswith(_PACKAGES):
            yield package.name, package.version
    for name, value in facts.variables.items():
        if name.startswith(_VARIABLES) and not name.startswith(_OF_IMAGES):
            yield f"variable {name}", value or '""'


def _gpu_names(facts: HostFacts) -> str | None:
    """``8 x NVIDIA H200``, by NVML or else by the PCI bus; "none" when both see none."""
    if isinstance(facts.nvml, NvmlProbe) and facts.nvml.gpus:
        return _counted(gpu.name or "lost" for gpu in facts.nvml.gpus)
    if isinstance(facts.pci, Unavailable):
        return None
    names = [device.name or f"{device.vendor}:{device.device}" for device in facts.pci if device.is_nvidia_gpu]
    return _counted(names) if names else "none"


def _module_kind(driver: KernelDriver | None) -> str | None:
    return None if driver is None or driver.open is None else "open" if driver.open else "proprietary"


def _each(values: Iterable[str | None]) -> str | None:
    """The one value of all GPUs, ``7 x on, 1 x off`` when they differ, None when no GPU shows it."""
    told = [value or "unknown" for value in values]
    if not told or set(told) == {"unknown"}:
        return None
    return told[0] if len(set(told)) == 1 else _counted(told)


def _counted(values: Iterable[str]) -> str:
    return ", ".join(f"{count} x {value}" for value, count in Counter(values).most_common())


def _listed(values: Iterable[str]) -> str:
    return ", ".join(sorted(values)) or "none"


def _named(names: Mapping[int, str], number: int | None) -> str | None:
    return None if number is None else names.get(number, str(number))


def _on_off(value: bool | None) -> str | None:
    return None if value is None else "on" if value else "off"


def _size(value: int | None) -> str | None:
    """In whole GiB where that is something, since firmware and kernels keep different megabytes for themselves."""
    if value is None:
        return None
    return f"{round(value / (1 << 30))} GiB" if value >= 1 << 30 else f"{value >> 20} MiB"
