"""Facts of hosts, made up: a healthy H200 server, a healthy GH200 one, and the ways in which they break.

healthy()                                                   # x86_64, one H200, torch 2.11.0+cu130, driver 580.159.04
healthy(limits=Limits(0, None))                             # the same with another section
cuda_fails(healthy(), 802)                                  # NVML is fine, cuInit gives 802, torch sees no GPU
with_variables(healthy(), CUDA_VISIBLE_DEVICES="")          # only the variable: what it does is another matter
with_torch(grace(), "2.10.0+cpu", cuda="", architectures=())
in_container(without_nodes(healthy()), "docker")
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import DeviceNode, KernelDriver, PciDevice, Services
from wheel_checks.facts.host.machine import Container, Limits, System
from wheel_checks.facts.host.probes import ChildEnd, CudaGpu, CudaProbe, KernelProbe, NvmlGpu, NvmlProbe, TorchProbe
from wheel_checks.facts.host.software import (
    CudaLibrary,
    Installed,
    Interpreter,
    Loader,
    Package,
    Ptxas,
    ShadowModule,
    TorchFiles,
    TritonFacts,
)
from wheel_checks.facts.host.torch.choice import COMPANIONS
from wheel_checks.model import Unavailable

VENV = "/opt/env"
SITE_PACKAGES = f"{VENV}/lib/python3.12/site-packages"
DRIVER = "580.159.04"
GIB = 1 << 30
INSTALLED = 1_790_000_000.0  # when everything was installed: 2026-09-21 14:13:20 UTC
NOT_STARTED = Unavailable("there is no NVIDIA GPU on the PCI bus, and no driver library")
DONE = ChildEnd(seconds=0.1)

ARCHITECTURES = {
    "x86_64": ("sm_75", "sm_80", "sm_86", "sm_90", "sm_100", "sm_120"),
    "aarch64": ("sm_80", "sm_90", "sm_100", "sm_110", "sm_120"),
}
REQUIRES = (  # of torch 2.11.0, as its METADATA has them
    "cuda-toolkit[cublas,cudart,cufft,cufile,cupti,curand,cusolver,cusparse,nvjitlink,nvrtc,nvtx]==13.0.2; "
    'platform_system == "Linux"',
    'cuda-bindings<14,>=13.0.3; platform_system == "Linux"',
    'nvidia-cudnn-cu13==9.19.0.56; platform_system == "Linux"',
    'nvidia-cusparselt-cu13==0.8.0; platform_system == "Linux"',
    'nvidia-nccl-cu13==2.28.9; platform_system == "Linux"',
    'nvidia-nvshmem-cu13==3.4.5; platform_system == "Linux"',
    'triton==3.6.0; platform_system == "Linux"',
)
LIBRARIES = {  # distribution: its version, and the sonames that it brings
    "nvidia-cublas": ("13.1.0.3", "cu13", ("libcublas.so.13", "libcublasLt.so.13")),
    "nvidia-cuda-cupti": ("13.0.85", "cu13", ("libcupti.so.13",)),
    "nvidia-cuda-nvrtc": ("13.0.88", "cu13", ("libnvrtc.so.13",)),
    "nvidia-cuda-runtime": ("13.0.96", "cu13", ("libcudart.so.13",)),
    "nvidia-cudnn-cu13": ("9.19.0.56", "cudnn", ("libcudnn.so.9",)),
    "nvidia-cufft": ("12.0.0.61", "cu13", ("libcufft.so.12",)),
    "nvidia-cufile": ("1.15.1.6", "cu13", ("libcufile.so.0",)),
    "nvidia-curand": ("10.4.0.35", "cu13", ("libcurand.so.10",)),
    "nvidia-cusolver": ("12.0.4.66", "cu13", ("libcusolver.so.12",)),
    "nvidia-cusparse": ("12.6.3.3", "cu13", ("libcusparse.so.12",)),
    "nvidia-cusparselt-cu13": ("0.8.0", "cusparselt", ("libcusparseLt.so.0",)),
    "nvidia-nccl-cu13": ("2.28.9", "nccl", ("libnccl.so.2",)),
    "nvidia-nvjitlink": ("13.0.88", "cu13", ("libnvJitLink.so.13",)),
    "nvidia-nvshmem-cu13": ("3.4.5", "nvshmem", ("libnvshmem_host.so.3",)),
    "nvidia-nvtx": ("13.0.85", "cu13", ("libnvToolsExt.so.1",)),
}


def healthy(**sections: Any) -> HostFacts:
    """An x86_64 server with one H200 on which everything works; ``sections`` are fields of :class:`HostFacts`."""
    return replace(_server("x86_64", "NVIDIA H200", "2335", (9, 0), 141 * GIB), **sections)


def grace(**sections: Any) -> HostFacts:
    """A GH200 server on which everything works: aarch64, and a kernel with pages of 64 KiB."""
    return replace(_server("aarch64", "NVIDIA GH200 480GB", "2342", (9, 0), 95 * GIB), **sections)


def hgx(gpus: int = 8, **sections: Any) -> HostFacts:
    """An HGX H200 board: GPUs connected by four NVSwitches, and a running fabric manager of the driver's version."""
    facts = _server("x86_64", "NVIDIA H200", "2335", (9, 0), 141 * GIB, gpus=gpus)
    assert isinstance(facts.nvml, NvmlProbe)
    switches = tuple(PciDevice(f"0000:{9 + n:02x}:00.0", "10de", "22a3", "068000", "nvidia") for n in range(4))
    nodes = (*_nodes(gpus), *(_node(f"/dev/nvidia-nvswitch{n}") for n in range(4)), _node("/dev/nvidia-nvswitchctl"))
    connected = tuple(replace(gpu, fabric_state=3, fabric_health=0) for gpu in facts.nvml.gpus)
    facts = replace(
        facts,
        pci=(*_present(facts.pci), *switches),
        nodes=nodes,
        services=Services(("nv-fabricmanager", "nvidia-persistenced"), fabric_manager=DRIVER),
        nvml=replace(facts.nvml, gpus=connected),
    )
    return replace(facts, **sections)


def without_gpu(facts: HostFacts) -> HostFacts:
    """The same software on a machine that has no GPU and no driver: a laptop, a login node, a CI machine."""
    assert isinstance(facts.loader, Loader)
    return replace(
        facts,
        pci=(PciDevice("0000:00:02.0", "8086", "46a6", "030000", "i915"),),
        driver=KernelDriver("", None, "", (), (), 0, ()),
        nodes=(),
        services=Services(()),
        loader=replace(facts.loader, cuda_libraries=(), cached_libcuda=False),
        nvml=NOT_STARTED,
        cuda=NOT_STARTED,
        torch=NOT_STARTED,
        kernel=NOT_STARTED,
    )


def without_driver(facts: HostFacts) -> HostFacts:
    """The GPU is on the bus, and no driver is installed: no module, no nodes, no libraries."""
    assert isinstance(facts.loader, Loader)
    lost = replace(
        facts,
        pci=tuple(replace(device, driver="") for device in _present(facts.pci)),
        driver=KernelDriver("", None, "", (), (), 0, ()),
        nodes=(),
        services=Services(()),
        loader=replace(facts.loader, cuda_libraries=(), cached_libcuda=False),
        nvml=NvmlProbe(DONE, -1, "libnvidia-ml.so.1: cannot open shared object file: No such file or directory"),
    )
    missing = CudaProbe(DONE, -1, "libcuda.so.1: cannot open shared object file: No such file or directory")
    return _torch_sees_nothing(
        replace(lost, cuda=missing), "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"
    )


def without_nodes(facts: HostFacts) -> HostFacts:
    """As in a container that was started without a GPU: the host's kernel shows its driver, and nothing else is
    there.
    """
    assert isinstance(facts.driver, KernelDriver)
    return replace(without_driver(facts), pci=facts.pci, driver=facts.driver)


def in_container(facts: HostFacts, kind: str = "docker", **fields: Any) -> HostFacts:
    """The same inside a container; ``fields`` are those of :class:`Container`."""
    marks = {"docker": ("/.dockerenv",), "podman": ("/run/.containerenv",), "kubernetes": ("KUBERNETES_SERVICE_HOST",)}
    return replace(facts, container=Container(kind, marks=marks.get(kind, ("container=lxc",)), denied={}, **fields))


def cuda_fails(facts: HostFacts, code: int, says: str = "", **fields: Any) -> HostFacts:
    """cuInit gives ``code`` and torch sees no GPU, while NVML is as it was; ``fields`` are those of CudaProbe.

    ``says`` is the error of torch.cuda.init().
    """
    assert isinstance(facts.cuda, CudaProbe)
    cuda = replace(facts.cuda, **{"code": code, "failed_at": "", "gpus": (), **fields})
    return _torch_sees_nothing(
        replace(facts, cuda=cuda), says or f"Unexpected error from cudaGetDeviceCount() ({code})"
    )


def nvml_fails(facts: HostFacts, code: int, **fields: Any) -> HostFacts:
    """nvmlInit gives ``code``; ``fields`` are those of NvmlProbe."""
    assert isinstance(facts.nvml, NvmlProbe)
    return replace(facts, nvml=replace(facts.nvml, **{"code": code, "gpus": (), **fields}))


def with_variables(facts: HostFacts, **variables: str) -> HostFacts:
    """The same with these environment variables."""
    return replace(facts, variables={**facts.variables, **variables})


def with_torch(
    facts: HostFacts, version: str, *, cuda: str = "13.0", architectures: tuple[str, ...] | None = None, **fields: Any
) -> HostFacts:
    """The same with another torch build on disk; ``fields`` are those of :class:`TorchFiles`.

    The results of the probes are unchanged: combine with :func:`cuda_fails` or replace ``torch``.
    """
    assert isinstance(facts.installed, Installed)
    assert isinstance(facts.torch, TorchProbe)
    files = facts.installed.torch
    assert files is not None
    if architectures is None:
        architectures = files.architectures
    changes = {"cuda": cuda, "architectures": architectures, "has_cuda_library": bool(cuda), **fields}
    files = replace(files, version=version, **changes)
    public, _, build = version.partition("+")
    companions = COMPANIONS if build not in ("", "cpu") else ()
    packages = tuple(
        replace(package, version=public, build=build)
        if package.name == "torch"
        else replace(package, build=build)
        if package.name in companions and package.build[:2] != build[:2]  # a build for another maker's GPUs
        else package
        for package in facts.installed.packages
    )
    probe = replace(facts.torch, version=version, cuda=cuda)
    return replace(facts, installed=replace(facts.installed, torch=files, packages=packages), torch=probe)


def with_cpu_torch(facts: HostFacts, version: str = "2.11.0+cpu") -> HostFacts:
    """The same with a torch for the CPU, installed from scratch: no CUDA library next to it, no Triton.

    CUDA works, and torch knows nothing of it. A torch that replaced another one is :func:`with_torch`.
    """
    facts = with_packages(facts, without=(*LIBRARIES, "cuda-toolkit", "cuda-bindings", "triton"))
    facts = with_torch(facts, version, cuda="", architectures=(), triton="")
    assert isinstance(facts.installed, Installed)
    assert isinstance(facts.loader, Loader)
    assert isinstance(facts.torch, TorchProbe)
    packages = tuple(replace(one, build="cpu", requires=_without_cuda(one)) for one in facts.installed.packages)
    modules = tuple(module for module in facts.installed.modules if module.name != "triton")
    resolved = {soname: path for soname, path in facts.loader.resolved.items() if "/nvidia/" not in path}
    says = "Torch not compiled with CUDA enabled"
    return replace(
        facts,
        installed=replace(facts.installed, packages=packages, modules=modules),
        loader=replace(facts.loader, resolved=resolved),
        triton=None,
        torch=replace(facts.torch, available=False, devices=0, init_error=says, computes=None),
        kernel=Unavailable("torch sees no GPU"),
    )


def torch_import_fails(facts: HostFacts, error: str, trace: str = "") -> HostFacts:
    """``import torch`` ends with this last line."""
    probe = TorchProbe(ChildEnd(1, seconds=0.4), False, error=error, trace=trace)
    return replace(facts, torch=probe, kernel=Unavailable("torch cannot be imported"))


def kernel_fails(facts: HostFacts, error: str, trace: str = "") -> HostFacts:
    """torch works, and the Triton kernel fails with this last line."""
    return replace(facts, kernel=KernelProbe(ChildEnd(1, seconds=0.8), error, trace))


def with_packages(facts: HostFacts, *packages: Package, without: tuple[str, ...] = ()) -> HostFacts:
    """The same with these distributions, which replace those of the same name, and without others."""
    assert isinstance(facts.installed, Installed)
    gone = {*without, *(package.name for package in packages)}
    kept = tuple(package for package in facts.installed.packages if package.name not in gone)
    return replace(facts, installed=replace(facts.installed, packages=(*kept, *packages)))


def package(name: str, version: str, **fields: Any) -> Package:
    """A distribution, installed by pip together with everything else; ``fields`` are those of :class:`Package`."""
    return Package(name, version, **{"folder": SITE_PACKAGES, "installer": "pip", "installed": INSTALLED, **fields})


def replaced(facts: HostFacts, section: str, **fields: Any) -> HostFacts:
    """The same with other fields in one section: ``replaced(facts, "system", wsl=True)``."""
    return replace(facts, **{section: replace(getattr(facts, section), **fields)})


def _server(machine: str, gpu: str, device: str, capability: tuple[int, int], memory: int, gpus: int = 1) -> HostFacts:
    numbers = range(gpus)
    uuids = [f"GPU-0e1f2a3b-0000-4000-8000-{number:012x}" for number in numbers]
    pages = 65536 if machine == "aarch64" else 4096
    kernel = "6.8.0-1028-nvidia-64k" if machine == "aarch64" else "6.8.0-63-generic"
    libraries = f"/usr/lib/{machine}-linux-gnu"
    return HostFacts(
        taken="2026-11-20T09:00:00Z",
        system=System(
            machine=machine,
            kernel=kernel,
            os_id="ubuntu",
            os_name="Ubuntu 24.04.3 LTS",
            libc=("glibc", "2.39"),
            page_size=pages,
            secure_boot=False,
            groups=("user",),
            user="user",
            kernel_command_line="BOOT_IMAGE=/boot/vmlinuz ro",
            memory_bytes=480 * GIB,
        ),
        container=Container("", denied={}, label="unconfined"),
        limits=Limits(shm_bytes=240 * GIB, memlock_bytes=None),
        pci=tuple(
            PciDevice(f"0000:{0x18 + number:02x}:00.0", "10de", device, "030200", "nvidia", name=gpu)
            for number in numbers
        ),
        driver=KernelDriver(
            version=DRIVER,
            open=True,
            version_line=f"NVRM version: NVIDIA UNIX Open Kernel Module for {machine}  {DRIVER}  Release Build",
            modules=("nvidia", "nvidia_modeset", "nvidia_uvm"),
            built_for=(kernel,),
            gpus=gpus,
            # The last three are registered on every machine that loads the driver, with or without such hardware.
            majors=(
                "nvidia",
                "nvidia-modeset",
                "nvidiactl",
                "nvidia-uvm",
                "nvidia-caps",
                "nvidia-nvswitch",
                "nvidia-nvlink",
                "nvidia-caps-imex-channels",
            ),
            device_file_mode="0666",
        ),
        nodes=_nodes(gpus),
        services=Services(("nvidia-persistenced",)),
        variables={"HOME": "/home/user", "PATH": f"{VENV}/bin:/usr/local/bin:/usr/bin:/bin", "VIRTUAL_ENV": VENV},
        interpreter=_interpreter(machine),
        installed=_installed(machine),
        loader=Loader(
            resolved=_resolved(machine),
            cuda_libraries=tuple(
                CudaLibrary(name, f"{libraries}/{name}", DRIVER, "driver", "ld.so.cache", size)
                for name, size in (("libcuda.so.1", 98_000_000), ("libnvidia-ml.so.1", 2_200_000))
            ),
            has_ldconfig=True,
            cached_libcuda=True,
        ),
        triton=_triton(),
        indexes=(),
        nvml=NvmlProbe(
            DONE,
            0,
            library=f"{libraries}/libnvidia-ml.so.{DRIVER}",
            driver_version=DRIVER,
            gpus=tuple(
                NvmlGpu(
                    number,
                    gpu,
                    uuids[number],
                    compute_mode=0,
                    mig_enabled=False,
                    memory_total=memory,
                    memory_free=memory - GIB,
                    remap_pending=False,
                    remap_failure=False,
                )
                for number in numbers
            ),
        ),
        cuda=CudaProbe(
            DONE,
            0,
            library=f"{libraries}/libcuda.so.{DRIVER}",
            driver_cuda=13000,
            gpus=tuple(CudaGpu(number, gpu, capability, uuids[number], memory) for number in numbers),
        ),
        torch=TorchProbe(
            ChildEnd(seconds=2.1),
            True,
            version="2.11.0+cu130",
            cuda="13.0",
            path=f"{SITE_PACKAGES}/torch/__init__.py",
            available=True,
            devices=gpus,
            computes="",
            computed=gpus,
        ),
        kernel=KernelProbe(ChildEnd(seconds=0.9)),
    )


def _nodes(gpus: int) -> tuple[DeviceNode, ...]:
    names = ("nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset", *(f"nvidia{n}" for n in range(gpus)))
    return tuple(_node(f"/dev/{name}") for name in names)


def _node(path: str) -> DeviceNode:
    return DeviceNode(path, "0666", "root", "root", "")


def _interpreter(machine: str) -> Interpreter:
    return Interpreter(
        path=f"{VENV}/bin/python",
        found="VIRTUAL_ENV names it",
        version="3.12.3",
        implementation="cpython",
        prefix=VENV,
        base_prefix="/usr",
        purelib=SITE_PACKAGES,
        platlib=SITE_PACKAGES,
        search_path=("/usr/lib/python312.zip", "/usr/lib/python3.12", "/usr/lib/python3.12/lib-dynload", SITE_PACKAGES),
        working_directory="/home/user/project",
        include="/usr/include/python3.12",
        python_h=True,
        machine=machine,
        libc=("glibc", "2.39"),
        tags=(
            *(f"cp312-cp312-manylinux_2_{minor}_{machine}" for minor in range(39, 16, -1)),
            f"cp312-abi3-manylinux_2_39_{machine}",
            "py3-none-any",
        ),
    )


def _installed(machine: str) -> Installed:
    torch = package("torch", "2.11.0", requested=True, requires=REQUIRES, build="cu130")
    vision = package("torchvision", "0.26.0", requested=True, requires=("torch==2.11.0",), build="cu130")
    audio = package("torchaudio", "2.11.0", requested=True, requires=("torch==2.11.0",), build="cu130")
    companions = (package("triton", "3.6.0"), package("cuda-toolkit", "13.0.2"), package("cuda-bindings", "13.0.3"))
    libraries = (package(name, version) for name, (version, _, _) in LIBRARIES.items())
    return Installed(
        packages=(torch, vision, audio, *companions, *libraries),
        torch=TorchFiles(
            folder=f"{SITE_PACKAGES}/torch",
            version="2.11.0+cu130",
            cuda="13.0",
            hip="",
            xpu="",
            architectures=ARCHITECTURES[machine],
            has_cuda_library=True,
            triton="triton==3.6.0",
        ),
        modules=tuple(ShadowModule(n, f"{SITE_PACKAGES}/{n}/__init__.py", SITE_PACKAGES) for n in ("torch", "triton")),
    )


def _resolved(machine: str) -> dict[str, str]:
    """The loader's files for libtorch_cuda.so: its own, those of the nvidia distributions, the system's."""
    own = {name: f"{SITE_PACKAGES}/torch/lib/{name}" for name in ("libc10.so", "libc10_cuda.so", "libtorch_cpu.so")}
    theirs = {
        soname: f"{SITE_PACKAGES}/nvidia/{folder}/lib/{soname}"
        for _, folder, sonames in LIBRARIES.values()
        for soname in sonames
    }
    system = {name: f"/usr/lib/{machine}-linux-gnu/{name}" for name in ("libc.so.6", "libm.so.6", "libstdc++.so.6")}
    return own | theirs | system


def _triton() -> TritonFacts:
    folder = f"{SITE_PACKAGES}/triton/backends/nvidia/bin"
    known = ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
    return TritonFacts(
        version="3.6.0",
        folder=f"{SITE_PACKAGES}/triton",
        owners=("triton",),
        ptxas=(
            Ptxas(f"{folder}/ptxas", "ptxas", "12.8.93", tuple(name for name in known if name != "sm_103a")),
            Ptxas(f"{folder}/ptxas-blackwell", "ptxas-blackwell", "12.9.86", (*known, "sm_121a")),
        ),
        blackwell_from=100,
        compiler="/usr/bin/gcc",
        compiler_fault="",
        cache="/home/user/.triton/cache",
        cache_error="",
        cache_type="ext4",
    )


def _without_cuda(package: Package) -> tuple[str, ...]:
    return tuple(text for text in package.requires if text.startswith("torch"))


def _torch_sees_nothing(facts: HostFacts, says: str) -> HostFacts:
    assert isinstance(facts.torch, TorchProbe)
    probe = replace(facts.torch, available=False, devices=0, init_error=says, computes=None)
    return replace(facts, torch=probe, kernel=Unavailable("torch sees no GPU"))


def _present(devices: tuple[PciDevice, ...] | Unavailable) -> tuple[PciDevice, ...]:
    assert not isinstance(devices, Unavailable)
    return devices
