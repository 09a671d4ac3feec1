"""Facts of hosts with AMD's and Intel's GPUs, made up: healthy ones, and the ways in which they break.

instinct()                               # x86_64, two MI300X, torch 2.11.0+rocm7.2, ROCm's own amdgpu
arc()                                    # x86_64, an Arc B580, torch 2.11.0+xpu, Level Zero
unseen(instinct())                       # torch is present, and sees no GPU
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.support.hosts import SITE_PACKAGES, healthy, replaced, with_torch, without_gpu
from wheel_checks.data import load
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import DeviceNode, KfdGpu, OtherDrivers, PciDevice
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.software import Loader
from wheel_checks.model import Unavailable

ROCM = tuple(load("other_gpus")["rocm"][0]["targets"])
LEVEL_ZERO = {name: f"/usr/lib/x86_64-linux-gnu/{name}" for name in ("libze_loader.so.1", "libze_intel_gpu.so.1")}


def node(path: str, group: str = "render", error: str = "") -> DeviceNode:
    """A node of the group render, that can be opened."""
    return DeviceNode(path, "0660", "root", group, error)


def instinct(*, target: str = "gfx942", device: str = "74a1", gpus: int = 2) -> HostFacts:
    """A server with AMD's GPUs, on which torch for ROCm computes."""
    facts = _without_nvidia(with_torch(healthy(), "2.11.0+rocm7.2", cuda="", architectures=ROCM, hip="7.2.53211"))
    numbers = range(gpus)
    renders = [f"/dev/dri/renderD{128 + number}" for number in numbers]
    drivers = OtherDrivers(
        ("amdgpu",),
        amdgpu="6.16.6",
        rocm="7.2.0",
        nodes=(node("/dev/kfd"), *map(node, renders)),
        gpus=tuple(KfdGpu(number + 1, target, renders[number], device) for number in numbers),
    )
    pci = tuple(PciDevice(f"0000:{5 + number:02x}:00.0", "1002", device, "120000", "amdgpu") for number in numbers)
    names = tuple("AMD Instinct MI300X" for _ in numbers)
    return _computing(replace(facts, pci=pci, other_drivers=drivers), names, "cuda")


def arc() -> HostFacts:
    """A workstation with an Arc B580, on which torch for XPU computes."""
    facts = _without_nvidia(with_torch(healthy(), "2.11.0+xpu", cuda="", architectures=(), xpu="20250302"))
    drivers = OtherDrivers(("xe",), nodes=(node("/dev/dri/renderD128"),), level_zero=LEVEL_ZERO)
    facts = replaced(facts, "system", kernel="6.14.0-29-generic")
    pci = (PciDevice("0000:03:00.0", "8086", "e20b", "030000", "xe"),)
    return _computing(replace(facts, pci=pci, other_drivers=drivers), ("Intel(R) Arc(TM) B580 Graphics",), "xpu")


def unseen(facts: HostFacts, says: str = "No HIP GPUs are available") -> HostFacts:
    """torch is imported, and sees no GPU."""
    assert isinstance(facts.torch, TorchProbe)
    probe = replace(facts.torch, available=False, devices=0, names=(), init_error=says, computes=None, computed=0)
    return replace(facts, torch=probe)


def failing(facts: HostFacts, says: str = "AcceleratorError: HIP error: invalid device function") -> HostFacts:
    """torch sees the GPU, and cannot compute on it."""
    assert isinstance(facts.torch, TorchProbe)
    return replace(facts, torch=replace(facts.torch, computes=says))


def with_drivers(facts: HostFacts, **fields: Any) -> HostFacts:
    """The same with other fields of OtherDrivers."""
    return replaced(facts, "other_drivers", **fields)


def unbound(facts: HostFacts) -> HostFacts:
    """No module holds the GPUs, and there are no nodes."""
    assert not isinstance(facts.pci, Unavailable)
    facts = replace(facts, pci=tuple(replace(device, driver="") for device in facts.pci))
    return unseen(with_drivers(facts, modules=(), amdgpu="", nodes=(), gpus=()))


def denied(facts: HostFacts, error: str = "EACCES") -> HostFacts:
    """Opening each node gives this error."""
    assert isinstance(facts.other_drivers, OtherDrivers)
    return unseen(with_drivers(facts, nodes=tuple(replace(one, error=error) for one in facts.other_drivers.nodes)))


def cuda_build(facts: HostFacts) -> HostFacts:
    """The same with a torch for CUDA, which sees no GPU."""
    return unseen(with_torch(facts, "2.11.0+cu130", hip="", xpu=""), "Found no NVIDIA driver on your system")


def _without_nvidia(facts: HostFacts) -> HostFacts:
    assert isinstance(facts.loader, Loader)
    bare = without_gpu(facts)
    resolved = {
        name: path for name, path in facts.loader.resolved.items() if not path.startswith(f"{SITE_PACKAGES}/nvidia")
    }
    return replace(
        bare, loader=replaced(bare, "loader", resolved=resolved).loader, torch=facts.torch, triton=bare.triton
    )


def _computing(facts: HostFacts, names: tuple[str, ...], device: str) -> HostFacts:
    assert isinstance(facts.torch, TorchProbe)
    count = len(names)
    probe = replace(facts.torch, devices=count, computed=count, names=names, device=device, computes="", cuda="")
    return replace(facts, torch=probe, kernel=Unavailable("there is no Triton"))
