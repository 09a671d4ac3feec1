"""DOC101 to DOC118: a torch that does not fit, how it came there, and platforms without wheels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.rules.case import NOTE, Case
from tests.support.hosts import (
    INSTALLED,
    cuda_fails,
    grace,
    healthy,
    package,
    replaced,
    torch_import_fails,
    with_cpu_torch,
    with_packages,
    with_torch,
    with_variables,
    without_gpu,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpus.devices import PciDevice
from wheel_checks.facts.host.probes import CudaProbe
from wheel_checks.facts.host.software import IndexSetting
from wheel_checks.model import Unavailable

WHL = "https://index.example.org/whl"  # PyTorch's own index has such folders: whl/cpu, whl/cu128
LIBRARIES = ("cublas", "cuda-cupti", "cuda-nvrtc", "cuda-runtime", "cudnn", "cufft", "cufile", "curand", "cusolver")
CODE_OF_CU128 = ("sm_80", "sm_90", "sm_100", "sm_120")  # aarch64
L4T_36 = "# R36 (release), REVISION: 4.3, GCID: 38968081, BOARD: generic, EABI: aarch64"
L4T_38 = "# R38 (release), REVISION: 2.0, GCID: 41844464, BOARD: generic, EABI: aarch64"
NO_IMAGE = "AcceleratorError: CUDA error: no kernel image is available for execution on the device"
GLIBC = "ImportError: /lib64/libc.so.6: version `GLIBC_2.28' not found (required by libtorch_cpu.so)"
UV_AUTO = ("uv", "torch-backend", "auto", "UV_TORCH_BACKEND")


# Builds for the CPU


def of_package_index(version: str = "2.10.0", **fields: Any) -> HostFacts:
    """A Grace host with the CPU wheel that the package index had for aarch64: METADATA hides the build."""
    facts = with_cpu_torch(grace(), f"{version}+cpu")
    return with_packages(facts, package("torch", version, **{"build": "cpu", "requested": True, **fields}))


def of_cpu_index(version: str = "2.11.0+cpu", **fields: Any) -> HostFacts:
    """An x86_64 host with the CPU build of PyTorch's own index, whose METADATA names it."""
    return with_packages(with_cpu_torch(healthy(), version), package("torch", version, build="cpu", **fields))


def indexed(facts: HostFacts, *settings: tuple[str, str, str, str]) -> HostFacts:
    """The same with these settings of installers: tool, name, value, source."""
    return replace(facts, indexes=tuple(IndexSetting(*setting) for setting in settings))


def with_cpu_variable() -> HostFacts:
    facts = indexed(of_cpu_index(), ("pip", "index", f"{WHL}/cpu", "PIP_INDEX_URL"))
    return with_variables(facts, PIP_INDEX_URL=f"{WHL}/cpu")


def of_conda(build: str) -> HostFacts:
    facts = with_cpu_torch(healthy(), "2.10.0") if "cpu" in build else healthy()
    return replaced(facts, "installed", conda={"pytorch": build})


# Who brought it


def left_behind(facts: HostFacts) -> HostFacts:
    """Libraries that a CUDA torch of an hour before had brought."""
    return with_packages(facts, *(package(f"nvidia-{n}-cu12", "12.8.1", installed=INSTALLED - 3600) for n in LIBRARIES))


def replaced_by(*requires: str, installed: float = INSTALLED) -> HostFacts:
    """A package with these requirements, and the CPU wheel that came in the same minute, or not."""
    facts = of_package_index("2.8.0", requested=False)
    user = package("whisperx", "3.7.4", requested=True, requires=requires, installed=installed)
    return with_packages(facts, user)


def for_another_cuda() -> HostFacts:
    """torch 2.12 for CUDA 13, which xformers brought, in place of one for CUDA 12.8 that the driver can run."""
    facts = behind(with_torch(healthy(), "2.12.0+cu130"))
    user = package("xformers", "0.0.34", requested=True, requires=("torch==2.12.0",))
    return left_behind(with_packages(facts, package("torch", "2.12.0", build="cu130"), user))


def outbid(value: str = f"{WHL}/cu128", name: str = "extra-index", strategy: str = "merge") -> HostFacts:
    """torch 2.12 of the package index, an extra index, and a driver for CUDA 12.8."""
    facts = behind(with_torch(healthy(), "2.12.0+cu130"))
    return indexed(facts, ("pip", name, value, "PIP_EXTRA_INDEX_URL"), ("pip", "strategy", strategy, ""))


# Drivers and GPUs


def behind(facts: HostFacts, cuda: int = 12080) -> HostFacts:
    """A driver for this CUDA, which is older than torch's."""
    probe = _cuda(facts)
    says = f"The NVIDIA driver on your system is too old (found version {cuda})"
    return cuda_fails(facts, 0, says, driver_cuda=cuda, gpus=probe.gpus)


def by_table(version: str) -> HostFacts:
    """A driver without libcuda, so that only the table shows its CUDA."""
    facts = cuda_fails(healthy(), 0, "the driver is too old", driver_cuda=0, gpus=_cuda(healthy()).gpus)
    return replaced(facts, "driver", version=version)


def gpu(facts: HostFacts, name: str, capability: tuple[int, int], says: str = NO_IMAGE) -> HostFacts:
    """The same with another GPU, on which torch does not compute."""
    seen = tuple(replace(one, name=name, capability=capability) for one in _cuda(facts).gpus)
    return replaced(replaced(facts, "cuda", gpus=seen), "torch", computes=says)


def thor(build: str, cuda: str, *architectures: str) -> HostFacts:
    return gpu(with_torch(grace(), f"2.9.1+{build}", cuda=cuda, architectures=architectures), "NVIDIA Thor", (11, 0))


def by_uv(facts: HostFacts, version: str = "2.11.0+cu130") -> HostFacts:
    return with_packages(facts, package("torch", version, installer="uv", build="cu130"))


def jetson(release: str, version: str, cuda: str, *architectures: str) -> HostFacts:
    facts = with_torch(grace(), version, cuda=cuda, architectures=architectures)
    return gpu(replaced(replace(facts, pci=()), "system", tegra=release), "Orin", (8, 7))


def rocm(available: bool = False) -> HostFacts:
    facts = with_torch(healthy(), "2.9.1+rocm6.4", cuda="", architectures=(), hip="6.4.43484")
    return replaced(facts, "torch", available=available)


def beside_amd(facts: HostFacts) -> HostFacts:
    assert not isinstance(facts.pci, Unavailable)
    return replace(facts, pci=(*facts.pci, PciDevice("0000:03:00.0", "1002", "744c", "030000", "amdgpu")))


# Platforms


def without_torch(facts: HostFacts, **interpreter: Any) -> HostFacts:
    return replaced(replaced(facts, "installed", torch=None), "interpreter", **interpreter)


def _cuda(facts: HostFacts) -> CudaProbe:
    assert isinstance(facts.cuda, CudaProbe)
    return facts.cuda


CASES = [
    Case(
        "DOC101",
        "torch 2.10 of the package index on a Grace host",
        of_package_index,
        ("torch 2.10.0 from the package index is a CPU build on aarch64; a CUDA build was expected",),
        evidence=("2.10.0+cpu, cuda = None", "libtorch_cuda.so", "NVIDIA GH200 480GB (9.0)"),
    ),
    Case("DOC101", "a CUDA build on aarch64", grace),
    Case("DOC101", "METADATA names the build, so it is of another index", lambda: of_package_index("2.10.0+cpu")),
    Case("DOC101", "torch 2.11 for the CPU, which the package index never had", lambda: of_package_index("2.11.0")),
    Case("DOC101", "no GPU", lambda: without_gpu(of_package_index())),
    Case("DOC101", "it is known who brought it", lambda: left_behind(replaced_by("torch==2.8.0"))),
    Case(
        "DOC102",
        "a variable names the index of builds for the CPU",
        with_cpu_variable,
        ("torch 2.11.0+cpu is a CPU build; a CUDA build was expected: PIP_INDEX_URL selects it",),
        evidence=(f"{WHL}/cpu", "2.11.0+cpu, cuda = None"),
    ),
    Case(
        "DOC102",
        "uv's torch-backend is cpu",
        lambda: indexed(of_package_index(), ("uv", "torch-backend", "cpu", "/home/user/project/pyproject.toml:12")),
        (
            "torch 2.10.0+cpu is a CPU build; a CUDA build was expected: /home/user/project/pyproject.toml:12 "
            "selects it",
        ),
    ),
    Case(
        "DOC102",
        "METADATA names the build, and no setting does",
        of_cpu_index,
        ("torch 2.11.0+cpu is a CPU build; a CUDA build was expected",),
        evidence=("2.11.0+cpu, by pip",),
    ),
    Case(
        "DOC102", "a CUDA build next to such a setting", lambda: indexed(healthy(), ("pip", "index", f"{WHL}/cpu", ""))
    ),
    Case("DOC102", "no GPU", lambda: without_gpu(with_cpu_variable())),
    Case("DOC102", "conda has chosen it", lambda: of_conda("cpu_generic_py312_h1")),
    Case(
        "DOC103",
        "a package that pins torch brought the CPU wheel",
        lambda: left_behind(replaced_by("torch==2.8.0", "numpy>=2")),
        (
            "torch 2.8.0+cpu, which was installed 2026-09-21 14:13:20 UTC together with whisperx 3.7.4 "
            "(torch==2.8.0), has replaced another build; it is a CPU-only build",
        ),
        evidence=(
            "9: nvidia-cublas-cu12, nvidia-cuda-cupti-cu12, nvidia-cuda-nvrtc-cu12, nvidia-cuda-runtime-cu12, "
            "nvidia-cudnn-cu12, nvidia-cufft-cu12 and 3 more",
            "no: another package required it",
        ),
    ),
    Case(
        "DOC103",
        "only the libraries and torchvision say that another torch was there",
        lambda: left_behind(
            with_packages(replaced_by("numpy>=2"), package("torchvision", "0.23.0", build="cu128", requires=()))
        ),
        (
            "torch 2.8.0+cpu, which was installed 2026-09-21 14:13:20 UTC, has replaced another build; it is a "
            "CPU-only build",
        ),
        evidence=("0.23.0 is built for cu128",),
    ),
    Case(
        "DOC103",
        "a package that pins torch brought a build for a CUDA that the driver does not support",
        for_another_cuda,
        (
            "torch 2.12.0+cu130, which was installed 2026-09-21 14:13:20 UTC together with xformers 0.0.34 "
            "(torch==2.12.0), has replaced another build; it is built for CUDA 13.0, but the driver supports 12.8",
        ),
    ),
    Case("DOC103", "libraries that nothing requires, next to a torch that works", lambda: left_behind(healthy())),
    Case("DOC103", "nothing shows another torch", lambda: replaced_by("torch==2.8.0")),
    Case(
        "DOC103",
        "another package still requires the libraries",
        lambda: with_packages(
            left_behind(replaced_by("torch==2.8.0")),
            package("cupy-cuda12x", "14.2.0", requires=tuple(f"nvidia-{name}-cu12" for name in LIBRARIES)),
        ),
    ),
    Case(
        "DOC104",
        "the package index had a higher version than the extra index",
        outbid,
        (
            "torch 2.12.0 of the package index was selected, not the cu128 build of the extra index "
            "(PIP_EXTRA_INDEX_URL): the highest version has priority; it is built for CUDA 13.0, but the driver "
            "supports 12.8",
        ),
        evidence=(f"{WHL}/cu128", "torch 2.11.0+cu128"),
    ),
    Case("DOC104", "the build of the extra index was taken", lambda: outbid(f"{WHL}/cu130")),
    Case("DOC104", "it is the only index", lambda: outbid(name="index")),
    Case("DOC104", "the first index that has torch wins", lambda: outbid(strategy="first-index")),
    Case(
        "DOC104",
        "what was taken works as well",
        lambda: indexed(healthy(), ("pip", "extra-index", f"{WHL}/cu128", "/etc/pip.conf")),
    ),
    Case(
        "DOC105",
        "torch for CUDA 13, and a driver for 12.8",
        lambda: behind(healthy()),
        ("the driver is too old for torch 2.11.0+cu130: it supports CUDA 12.8, but CUDA 13 needs driver 580 or later",),
        evidence=("CUDA 12.8", "2.11.0+cu130, cuda = 13.0", "driver 580 or newer", "driver 525.60.13 or newer"),
    ),
    Case(
        "DOC105",
        "nothing but the driver's version is known",
        lambda: by_table("535.288.01"),
        ("the driver is too old for torch 2.11.0+cu130: it supports CUDA 12.2, but CUDA 13 needs driver 580 or later",),
    ),
    Case(
        "DOC105",
        "only torch itself says what it found",
        lambda: replaced(replaced(behind(healthy()), "cuda", driver_cuda=0), "driver", version="625.10"),
        ("the driver is too old for torch 2.11.0+cu130: it supports CUDA 12.8, but CUDA 13 needs driver 580 or later",),
    ),
    Case(
        "DOC105",
        "a torch for a CUDA past our tables",
        lambda: with_torch(healthy(), "2.19.0+cu140", cuda="14.0"),
        ("the driver is too old for torch 2.19.0+cu140: it supports CUDA 13.0, but CUDA 14 needs a newer driver",),
    ),
    Case("DOC105", "a newer minor version", lambda: with_torch(healthy(), "2.15.0+cu132", cuda="13.2")),
    Case("DOC105", "a driver past our table", lambda: by_table("625.10")),
    Case("DOC105", "an older CUDA than the driver's", lambda: with_torch(healthy(), "2.10.0+cu128", cuda="12.8")),
    Case(
        "DOC106",
        "a newer minor version than the driver's",
        lambda: with_torch(healthy(), "2.15.0+cu132", cuda="13.2"),
        ("harmless: torch is built for CUDA 13.2 and the driver supports 13.0; only the major version matters",),
        severity=NOTE,
        evidence=("CUDA 13.0",),
    ),
    Case("DOC106", "the driver's own version", healthy),
    Case("DOC106", "an older one", lambda: with_torch(healthy(), "2.9.1+cu128", cuda="12.8")),
    Case("DOC106", "a newer major version", lambda: behind(healthy())),
    Case(
        "DOC107",
        "a Python that is newer than all wheels",
        lambda: without_torch(healthy(), version="3.17.0"),
        ("torch has no wheel for cpython 3.17.0 (cp317)",),
    ),
    Case(
        "DOC107",
        "a free-threaded build before 3.13",
        lambda: without_torch(healthy(), version="3.12.3", free_threaded=True),
        ("torch has no wheel for cpython 3.12.3 (cp312t)",),
    ),
    Case(
        "DOC107",
        "PyPy",
        lambda: without_torch(healthy(), version="3.11.13", implementation="pypy"),
        ("torch has no wheel for pypy 3.11.13 (pypy311)",),
    ),
    Case("DOC107", "a Python with wheels", lambda: without_torch(healthy())),
    Case("DOC107", "a Python with wheels of old releases", lambda: without_torch(healthy(), version="3.9.25")),
    Case("DOC107", "torch is there anyway", lambda: replaced(healthy(), "interpreter", version="3.17.0")),
    Case("DOC107", "no GPU", lambda: without_gpu(without_torch(healthy(), version="3.17.0"))),
    Case(
        "DOC108",
        "an old glibc, and no torch",
        lambda: without_torch(healthy(), libc=("glibc", "2.26")),
        ("glibc 2.26 is too old for torch's wheels, which need 2.28",),
        evidence=("2.26", "torch 2.6.0"),
    ),
    Case(
        "DOC108",
        "an old glibc, and a torch that cannot be loaded for it",
        lambda: torch_import_fails(replaced(grace(), "interpreter", libc=("glibc", "2.26")), GLIBC),
        ("glibc 2.26 is too old for torch's wheels, which need 2.28",),
        evidence=(GLIBC, "torch 2.5.1"),
    ),
    Case("DOC108", "the glibc that is needed", lambda: without_torch(healthy(), libc=("glibc", "2.28"))),
    Case("DOC108", "a torch that runs there", lambda: replaced(healthy(), "interpreter", libc=("glibc", "2.26"))),
    Case(
        "DOC108",
        "the import fails for another reason",
        lambda: torch_import_fails(
            replaced(healthy(), "interpreter", libc=("glibc", "2.26")), "libcudnn.so.9: no such"
        ),
    ),
    Case(
        "DOC109",
        "Alpine Linux",
        lambda: without_torch(healthy(), libc=("musl", "1.2.5")),
        ("the interpreter uses musl, for which torch has no wheels",),
        evidence=("musl 1.2.5",),
    ),
    Case("DOC109", "glibc", lambda: without_torch(healthy())),
    Case(
        "DOC109", "a torch that was built for musl", lambda: replaced(healthy(), "interpreter", libc=("musl", "1.2.5"))
    ),
    Case(
        "DOC110",
        "the wheel for servers on a Jetson Orin",
        lambda: jetson(L4T_36, "2.10.0+cu126", "12.6", "sm_80", "sm_90"),
        ("torch 2.10.0+cu126 is not a build for this Jetson",),
        evidence=(L4T_36, "sm_80 sm_90"),
    ),
    Case(
        "DOC110",
        "the CPU wheel of the package index on a Jetson Orin",
        lambda: jetson(L4T_36, "2.10.0+cpu", ""),
        ("torch 2.10.0+cpu is not a build for this Jetson",),
    ),
    Case("DOC110", "NVIDIA's build for it", lambda: jetson(L4T_36, "2.8.0", "12.6", "sm_87")),
    Case("DOC110", "JetPack 7", lambda: jetson(L4T_38, "2.11.0+cu130", "13.0", *CODE_OF_CU128, "sm_110")),
    Case(
        "DOC111",
        "a build for CUDA 12.8 on Thor",
        lambda: thor("cu128", "12.8", *CODE_OF_CU128),
        ("torch 2.9.1+cu128 has no code for Thor (sm_110), which only builds for CUDA 13 have",),
        evidence=("sm_80 sm_90 sm_100 sm_120", "NVIDIA Thor (11.0)"),
    ),
    Case("DOC111", "a build for CUDA 13", lambda: thor("cu130", "13.0", *CODE_OF_CU128, "sm_110")),
    Case("DOC111", "a build of CUDA 12 with code for Thor's old number", lambda: thor("cu129", "12.9", "sm_101")),
    Case(
        "DOC112",
        "a T4G",
        lambda: gpu(grace(), "NVIDIA T4G", (7, 5)),
        ("torch 2.11.0+cu130 has no code for the T4G (sm_75): no wheel for aarch64 has it",),
        evidence=("NVIDIA T4G (7.5)",),
    ),
    Case("DOC112", "a T4", lambda: gpu(healthy(), "Tesla T4", (7, 5), "")),
    Case(
        "DOC112",
        "a build with code for it",
        lambda: gpu(with_torch(grace(), "2.9.0", architectures=("sm_75",)), "T4G", (7, 5)),
    ),
    Case(
        "DOC113",
        "uv chose by the driver on a V100",
        lambda: indexed(by_uv(gpu(healthy(), "Tesla V100-SXM2-16GB", (7, 0))), UV_AUTO),
        (
            "uv selected torch 2.11.0+cu130, which has no code for Tesla V100-SXM2-16GB (7.0): --torch-backend=auto "
            "considers the driver, not the GPU",
        ),
        evidence=("auto",),
    ),
    Case("DOC113", "pip installed it", lambda: gpu(healthy(), "Tesla V100-SXM2-16GB", (7, 0))),
    Case("DOC113", "uv installed it, and was not asked to choose", lambda: by_uv(gpu(healthy(), "V100", (7, 0)))),
    Case("DOC113", "uv chose a build that runs", lambda: indexed(by_uv(healthy()), UV_AUTO)),
    Case(
        "DOC114",
        "conda's build string says cpu",
        lambda: of_conda("cpu_generic_py312_h6d5a3c8_1"),
        ("conda has installed a CPU build of torch 2.10.0; a CUDA build was expected",),
        evidence=("cpu_generic_py312_h6d5a3c8_1",),
    ),
    Case("DOC114", "conda's build string says cuda", lambda: of_conda("cuda129_generic_py312_h2f3a7c1_200")),
    Case("DOC114", "no GPU", lambda: without_gpu(of_conda("cpu_generic_py312_h6d5a3c8_1"))),
    Case(
        "DOC115",
        "a build for ROCm",
        rocm,
        ("torch 2.9.1+rocm6.4 is built for ROCm (AMD), but the GPU is made by NVIDIA",),
        evidence=("2.9.1+rocm6.4, hip = 6.4.43484",),
    ),
    Case(
        "DOC115",
        "a build for XPU",
        lambda: with_torch(healthy(), "2.9.1+xpu", cuda="", architectures=(), xpu="20250101"),
        ("torch 2.9.1+xpu is built for XPU (Intel), but the GPU is made by NVIDIA",),
    ),
    Case("DOC115", "an AMD GPU is there too, and works", lambda: beside_amd(rocm(available=True))),
    Case("DOC115", "no NVIDIA GPU", lambda: without_gpu(rocm())),
    Case("DOC115", "a CUDA build", healthy),
    Case(
        "DOC118",
        "an image for x86_64 on a Grace host",
        lambda: replaced(
            replaced(grace(), "interpreter", machine="x86_64"), "system", machine="x86_64", emulator="qemu-x86_64"
        ),
        ("Python runs in an emulator: it is built for x86_64, but the machine is not",),
        evidence=("qemu-x86_64",),
    ),
    Case(
        "DOC118",
        "the interpreter alone is for another CPU",
        lambda: replaced(grace(), "interpreter", machine="x86_64"),
        ("Python runs in an emulator: it is built for x86_64, but the machine is not",),
        evidence=("aarch64",),
    ),
    Case("DOC118", "the machine's own CPU", grace),
    Case(
        "DOC118",
        "emulated, and no GPU",
        lambda: without_gpu(replaced(healthy(), "system", emulator="qemu-x86_64")),
    ),
]
