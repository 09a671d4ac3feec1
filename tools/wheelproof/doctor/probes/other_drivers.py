"""The drivers of AMD's and Intel's GPUs: modules, device nodes, amdkfd's topology, and Level Zero. Nothing is run."""

import re
from collections.abc import Iterator
from pathlib import Path

from wheel_checks.facts.host.gpu import DeviceNode, KfdGpu, OtherDrivers
from wheelproof.doctor.probes.files import first_line, names_in, text_of
from wheelproof.doctor.probes.nodes import read_node

_MODULES = ("amdgpu", "i915", "xe")
_TOPOLOGY = "sys/class/kfd/kfd/topology/nodes"
_MOST = 128  # render nodes, and nodes of the topology
_RENDER = re.compile(r"renderD\d{1,4}")
_PROPERTY = re.compile(r"^(gfx_target_version|drm_render_minor|device_id) (\d{1,10})$", re.MULTILINE)
_ROCM = ("opt/rocm/.info/version", "opt/rocm/core/.info/version")
_LEVEL_ZERO = ("libze_loader.so.1", "libze_intel_gpu.so.1")
_FOLDERS = ("usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib", "usr/local/lib")


def read_other_drivers(root: str = "/") -> OtherDrivers:
    """What the files below ``root`` show. In a container the modules are the host's, the nodes the container's."""
    top = Path(root)
    return OtherDrivers(
        modules=tuple(name for name in _MODULES if (top / "sys/module" / name).is_dir()),
        amdgpu=first_line(top / "sys/module/amdgpu/version"),
        rocm=next(filter(None, (first_line(top / path) for path in _ROCM)), ""),
        nodes=tuple(_nodes(top)),
        gpus=tuple(_gpus(top / _TOPOLOGY)),
        level_zero={name: f"/{found}" for name in _LEVEL_ZERO if (found := _library(top, name))},
    )


def _nodes(top: Path) -> Iterator[DeviceNode]:
    renders = [name for name in names_in(top / "dev/dri") if _RENDER.fullmatch(name)][:_MOST]
    if (top / "dev/kfd").exists() or (top / "sys/module/amdgpu").is_dir():
        yield read_node(top / "dev/kfd", "/dev/kfd")
    yield from (read_node(top / "dev/dri" / name, f"/dev/dri/{name}") for name in renders)


def _gpus(topology: Path) -> Iterator[KfdGpu]:
    """The nodes of the topology that are GPUs: CPUs have the target 0."""
    for name in names_in(topology, _MOST):
        found = _PROPERTY.findall(text_of(topology / name / "properties", 16384))
        values = {key: int(number) for key, number in found}
        if name.isdecimal() and (target := target_of(values.get("gfx_target_version", 0))):
            minor = values.get("drm_render_minor", 0)
            render = f"/dev/dri/renderD{minor}" if minor else ""
            yield KfdGpu(int(name), target, render, f"{values.get('device_id', 0):04x}")


def target_of(version: int) -> str:
    """The processor that amdkfd's gfx_target_version stands for: 90402 is "gfx942", 90010 is "gfx90a"; "" if none.

    The number is major * 10000 + minor * 100 + stepping, and names have the stepping in hexadecimal (Linux,
    drivers/gpu/drm/amd/amdkfd/kfd_device.c; LLVM, User Guide for AMDGPU Backend, Processors).
    """
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}" if 5 < major < 100 and stepping < 16 else ""


def _library(top: Path, name: str) -> str:
    return next((f"{folder}/{name}" for folder in _FOLDERS if (top / folder / name).exists()), "")
