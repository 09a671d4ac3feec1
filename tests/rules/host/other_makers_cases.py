"""AMD's and Intel's GPUs: the driver, its nodes, variables, torch builds, and targets."""

from __future__ import annotations

from dataclasses import replace

from tests.rules.case import Case
from tests.support.hosts import cuda_fails, grace, healthy, in_container, replaced, with_torch, with_variables
from tests.support.other_hosts import (
    LEVEL_ZERO,
    arc,
    cuda_build,
    denied,
    failing,
    instinct,
    node,
    unbound,
    unseen,
    with_drivers,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import KfdGpu, OtherDrivers, PciDevice
from wheel_checks.facts.host.software import CudaLibrary, IndexSetting
from wheel_checks.model import Unavailable

OVERRIDE = "HSA_OVERRIDE_GFX_VERSION"
RENDER = "/dev/dri/renderD128"


def kernel(facts: HostFacts, release: str) -> HostFacts:
    return replaced(facts, "system", kernel=release)


def without_kfd(facts: HostFacts) -> HostFacts:
    return unseen(with_drivers(facts, nodes=(node("/dev/kfd", error="ENOENT"),)))


def held(facts: HostFacts, driver: str) -> HostFacts:
    assert not isinstance(facts.pci, Unavailable)
    return replace(facts, pci=tuple(replace(one, driver=driver) for one in facts.pci))


def one_denied(facts: HostFacts) -> HostFacts:
    """The second render node is another user's."""
    assert isinstance(facts.other_drivers, OtherDrivers)
    first, second, third = facts.other_drivers.nodes
    return with_drivers(facts, nodes=(first, second, replace(third, error="EACCES")))


def phoenix(*, target: str = "gfx1103") -> HostFacts:
    """A laptop whose GPU has no code in PyTorch's builds."""
    return failing(instinct(target=target, device="15bf", gpus=1))


def with_a_card(facts: HostFacts, *targets: str) -> HostFacts:
    """GPUs of several kinds, in the order of amdkfd."""
    gpus = tuple(KfdGpu(number, target, device="0000") for number, target in enumerate(targets, 1))
    return with_drivers(facts, gpus=gpus)


def laptop() -> HostFacts:
    """A CUDA build next to the GPU of an Intel CPU."""
    return replace(cuda_build(arc()), pci=(PciDevice("0000:00:02.0", "8086", "46a6", "030000", "i915"),))


def wsl(code: int, path: str = "/usr/lib/wsl/lib/libcuda.so.1") -> HostFacts:
    library = CudaLibrary("libcuda.so.1", path, "", "driver", "known folder", 10**5)
    facts = replaced(cuda_fails(healthy(), code), "loader", cuda_libraries=(library,))
    return replaced(facts, "system", wsl=True)


def orin(*settings: IndexSetting) -> HostFacts:
    facts = with_torch(grace(), "2.11.0+cu130", architectures=("sm_80", "sm_90"))
    facts = replaced(facts, "system", tegra="# R36 (release), REVISION: 4.3, BOARD: generic")
    return replace(facts, indexes=settings, pci=())


CASES = [
    Case(
        "DOC302",
        "no module holds AMD's GPU",
        lambda: unbound(instinct()),
        ("the AMD GPU has no driver: it needs amdgpu",),
        evidence=("1002:74a1 at 0000:05:00.0, no driver",),
    ),
    Case(
        "DOC302",
        "no module contains an Arc B-Series on an old kernel",
        lambda: kernel(unbound(arc()), "6.8.0-63-generic"),
        ("the Intel GPU has no driver: it needs i915 or xe",),
    ),
    Case(
        "DOC302",
        "a virtual machine holds AMD's GPU",
        lambda: held(unbound(instinct()), "vfio-pci"),
        ("the AMD GPU has no driver: it needs amdgpu",),
    ),
    Case(
        "DOC302",
        "amdgpu has no /dev/kfd",
        lambda: without_kfd(instinct()),
        ("the GPU is bound to amdgpu, but /dev/kfd is missing: this kernel does not support computing on the GPU",),
    ),
    Case("DOC302", "AMD's GPUs compute", instinct),
    Case("DOC302", "Intel's GPU computes", arc),
    Case("DOC302", "no module holds AMD's GPU, and torch is for CUDA", lambda: cuda_build(unbound(instinct()))),
    Case(
        "DOC501",
        "a container without AMD's nodes",
        lambda: in_container(without_kfd(instinct())),
        ("the docker container was started without the AMD GPU: missing /dev/kfd and /dev/dri/renderD*",),
    ),
    Case(
        "DOC501",
        "a container whose cgroup denies AMD's nodes",
        lambda: in_container(denied(instinct(), "EPERM")),
        ("the docker container was started without the AMD GPU: missing /dev/kfd and /dev/dri/renderD*",),
    ),
    Case(
        "DOC501",
        "a container without Intel's nodes",
        lambda: in_container(unseen(with_drivers(arc(), nodes=())), "podman"),
        ("the podman container was started without the Intel GPU: missing /dev/dri/renderD*",),
    ),
    Case("DOC501", "a container with AMD's nodes", lambda: in_container(instinct())),
    Case("DOC501", "AMD's nodes are there, and torch sees no GPU", lambda: in_container(unseen(instinct()))),
    Case(
        "DOC315",
        "/dev/kfd is for a group",
        lambda: denied(instinct()),
        ("this user has no access to /dev/kfd: mode 0660, root:render",),
        evidence=("EACCES, mode 0660, root:render",),
    ),
    Case(
        "DOC315",
        "Intel's render node is for a group",
        lambda: denied(arc()),
        (f"this user has no access to {RENDER}: mode 0660, root:render",),
    ),
    Case("DOC315", "one of two render nodes is another user's", lambda: unseen(one_denied(instinct()))),
    Case("DOC315", "the nodes are denied, and torch is for CUDA", lambda: cuda_build(denied(instinct()))),
    Case(
        "DOC310",
        "Level Zero is missing",
        lambda: unseen(with_drivers(arc(), level_zero={})),
        (
            "Level Zero is incomplete: missing libze_loader.so.1 (its loader) and libze_intel_gpu.so.1 (its driver "
            "for Intel's GPUs)",
        ),
    ),
    Case("DOC310", "Level Zero is there", lambda: unseen(with_drivers(arc(), level_zero=LEVEL_ZERO))),
    Case(
        "DOC601",
        "HIP_VISIBLE_DEVICES is -1",
        lambda: with_variables(unseen(instinct()), HIP_VISIBLE_DEVICES="-1"),
        ("HIP_VISIBLE_DEVICES is '-1', which hides all AMD GPUs",),
    ),
    Case(
        "DOC601",
        "ROCR_VISIBLE_DEVICES is empty",
        lambda: with_variables(unseen(instinct()), ROCR_VISIBLE_DEVICES=""),
        ("ROCR_VISIBLE_DEVICES is empty, which hides all AMD GPUs",),
    ),
    Case(
        "DOC601",
        "HIP_VISIBLE_DEVICES names a third of two GPUs",
        lambda: with_variables(unseen(instinct()), HIP_VISIBLE_DEVICES="2,0"),
        ("HIP_VISIBLE_DEVICES is '2,0', which hides all AMD GPUs",),
    ),
    Case(
        "DOC601",
        "ONEAPI_DEVICE_SELECTOR leaves OpenCL",
        lambda: with_variables(unseen(arc()), ONEAPI_DEVICE_SELECTOR="opencl:*"),
        ("ONEAPI_DEVICE_SELECTOR is 'opencl:*', which hides all Level Zero GPUs",),
    ),
    Case(
        "DOC601",
        "ZE_AFFINITY_MASK names a second of one GPU",
        lambda: with_variables(unseen(arc()), ZE_AFFINITY_MASK="1.0"),
        ("ZE_AFFINITY_MASK is '1.0', which hides all Intel GPUs",),
    ),
    Case(
        "DOC601",
        "HIP takes an empty value for none",
        lambda: with_variables(unseen(instinct()), HIP_VISIBLE_DEVICES=""),
    ),
    Case(
        "DOC601", "HIP_VISIBLE_DEVICES names the first GPU", lambda: with_variables(instinct(), HIP_VISIBLE_DEVICES="0")
    ),
    Case(
        "DOC601", "Level Zero is selected", lambda: with_variables(unseen(arc()), ONEAPI_DEVICE_SELECTOR="level_zero:0")
    ),
    Case(
        "DOC115",
        "a CUDA build on an MI300X",
        lambda: cuda_build(instinct()),
        ("torch 2.11.0+cu130 is built for CUDA (NVIDIA), but the GPU is made by AMD",),
        evidence=("gfx942",),
    ),
    Case(
        "DOC115",
        "a CUDA build on an Arc",
        lambda: cuda_build(arc()),
        ("torch 2.11.0+cu130 is built for CUDA (NVIDIA), but the GPU is made by Intel",),
    ),
    Case(
        "DOC115",
        "a build for XPU on an MI300X",
        lambda: unseen(with_torch(instinct(), "2.11.0+xpu", cuda="", hip="", xpu="20250302", architectures=())),
        ("torch 2.11.0+xpu is built for XPU (Intel), but the GPU is made by AMD",),
    ),
    Case("DOC115", "a CUDA build next to the GPU of a CPU", laptop),
    Case("DOC115", "a CUDA build and a GPU of AMD's for which there isn't one", lambda: cuda_build(phoenix())),
    Case("DOC115", "a build for ROCm on an MI300X", instinct),
    Case(
        "DOC702",
        "no code for a gfx1103",
        phoenix,
        ("torch 2.11.0+rocm7.2 has no code for gfx1103",),
        evidence=("gfx1103",),
    ),
    Case(
        "DOC702",
        "a build without gfx950",
        lambda: with_torch(
            failing(instinct(target="gfx950")), "2.9.1+rocm6.4", cuda="", hip="6.4", architectures=("gfx90a", "gfx942")
        ),
        ("torch 2.9.1+rocm6.4 has no code for gfx950",),
    ),
    Case(
        "DOC702",
        "code for a group of targets",
        lambda: with_torch(
            failing(instinct(target="gfx1103")), "2.11.0+rocm7.2", cuda="", hip="7.2", architectures=("gfx11-generic",)
        ),
    ),
    Case("DOC702", "AMD's GPUs compute", instinct),
    Case(
        "DOC702",
        "no code for the GPU of the CPU next to a card",
        lambda: with_a_card(failing(instinct(), "GPU 1: HIP error: invalid device function"), "gfx1100", "gfx1036"),
        ("torch 2.11.0+rocm7.2 has no code for gfx1036, one of the GPUs here",),
    ),
    Case(
        "DOC702",
        "the card computes, and the GPU of the CPU was not used",
        lambda: with_a_card(instinct(), "gfx1100", "gfx1036"),
    ),
    Case(
        "DOC702", "the target is another one's by a variable", lambda: with_variables(phoenix(), **{OVERRIDE: "11.0.0"})
    ),
    Case(
        "DOC609",
        "a gfx1103 that runs code for gfx1100",
        lambda: with_variables(phoenix(), **{OVERRIDE: "11.0.0"}),
        ("HSA_OVERRIDE_GFX_VERSION makes the GPU gfx1103 run code for gfx1100",),
        evidence=("11.0.0",),
    ),
    Case(
        "DOC609",
        "an MI300X that runs code for gfx1030",
        lambda: with_variables(unseen(instinct()), **{OVERRIDE: "10.3.0"}),
        ("HSA_OVERRIDE_GFX_VERSION makes the GPU gfx942 run code for gfx1030",),
    ),
    Case(
        "DOC609",
        "a value that is not a version",
        lambda: with_variables(failing(instinct()), **{OVERRIDE: "gfx942"}),
        ("HSA_OVERRIDE_GFX_VERSION is 'gfx942'; expected a version such as 11.0.0",),
    ),
    Case(
        "DOC609",
        "the target of one of two kinds of GPUs",
        lambda: with_variables(with_a_card(unseen(instinct()), "gfx1151", "gfx1201"), **{OVERRIDE: "11.5.1"}),
        ("HSA_OVERRIDE_GFX_VERSION makes the GPU gfx1201 run code for gfx1151",),
    ),
    Case("DOC609", "the GPU's own target", lambda: with_variables(failing(instinct()), **{OVERRIDE: "9.4.2"})),
    Case("DOC609", "it computes anyway", lambda: with_variables(instinct(), **{OVERRIDE: "9.0.10"})),
    Case(
        "DOC515",
        "500 in WSL",
        lambda: wsl(500),
        ("WSL is older than the Windows driver (cuInit: 500)",),
    ),
    Case(
        "DOC515",
        "500 in a container of WSL",
        lambda: in_container(wsl(500)),
        ("the container lacks a library of the Windows driver (cuInit: 500)",),
    ),
    Case("DOC515", "500 on a plain host", lambda: replaced(wsl(500), "system", wsl=False)),
    Case(
        "DOC110",
        "uv chose a wheel for servers on an Orin",
        lambda: orin(IndexSetting("uv", "torch-backend", "auto", "UV_TORCH_BACKEND")),
        ("torch 2.11.0+cu130 is not a build for this Jetson",),
        evidence=("auto",),
    ),
    Case("DOC110", "no Jetson, and uv chose", lambda: replaced(orin(), "system", tegra="")),
]
