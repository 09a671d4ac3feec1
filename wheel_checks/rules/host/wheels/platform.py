"""Platforms for which there is no wheel of torch, or none with code for their GPU."""

from collections.abc import Iterator
from typing import Any

from packaging.version import Version

from wheel_checks.commands import unset
from wheel_checks.data import load
from wheel_checks.facts.host.advice import RECOMMENDED_PYTHON, is_old_jetson, new_environment, reinstall_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import shows_gpu
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.software import IndexSetting
from wheel_checks.facts.host.torch.choice import MACHINES, libc_of, machine_of, python_tag
from wheel_checks.facts.host.torch.fit import gpus_of_entry
from wheel_checks.model import Evidence, Finding, Fix, Unavailable, need
from wheel_checks.parsing import version_or_none
from wheel_checks.phrases import joined
from wheel_checks.rules.host.cause import Layer, cause
from wheel_checks.rules.host.torch_evidence import code_list, gpu_names, installed_torch, version_file

TEGRA_WITHOUT_WHEELS = ("sm_53", "sm_62", "sm_72", "sm_87")  # Jetson Nano to Orin


def _import_error(facts: HostFacts) -> str:
    """What the import of torch said when it failed."""
    probe = facts.torch
    return f"{probe.error}\n{probe.trace}" if isinstance(probe, TorchProbe) and not probe.imported else ""


@cause(
    "A07",
    "torch has wheels for this Python",
    layer=Layer.PYTHON,
    explains=("torch:missing",),
    why="A wheel is built for one version of CPython; the free-threaded builds (3.14t) and other implementations count "
    "as different ones. No release of torch has wheels for a Python that is too new.",
    example="Could not find a version that satisfies the requirement torch (from versions: none)",
    fix="Create an environment with a Python that has wheels: 3.12 has had them since torch 2.2.",
    sources="triton-windows#128, triton#6721",
    tested="facts; the list of the package index, read on the day that the table has",
)
def no_wheel_for_python(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """No torch is installed, and no release of the table has a wheel for this interpreter."""
    interpreter, tag, machine = need(facts.interpreter), python_tag(facts.interpreter), machine_of(facts)
    if installed_torch(facts) is not None or not tag or machine not in MACHINES or not shows_gpu(facts):
        return
    table = load("torch_releases")
    known = {python for release in table["release"] for python in release[machine]["pythons"]}
    if tag in known:
        return
    newest = table["release"][-1]
    yield Finding(
        f"torch has no wheel for {interpreter.implementation} {interpreter.version} ({tag})",
        (
            Evidence("interpreter", tag, interpreter.path),
            Evidence(
                f"torch {newest['version']}", ", ".join(newest[machine]["pythons"]), f"table of {table['collected']}"
            ),
        ),
        new_environment(facts, RECOMMENDED_PYTHON),
    )


@cause(
    "A08",
    "glibc is new enough for torch's wheels",
    layer=Layer.PYTHON,
    explains=("torch:missing", "torch:import"),
    why="A wheel runs on the glibc of its tag and newer ones. torch's wheels need 2.28 (RHEL 8, Ubuntu 20.04) since "
    "2.6 on aarch64 and 2.7 on x86_64; on an older system an installer finds no wheel, or selects a very old release.",
    example="torch on CentOS 7 or Amazon Linux 2: version `GLIBC_2.28' not found",
    fix="Use a container image or a system with a newer glibc.",
    sources="pytorch#123649, pytorch#126551",
    tested="facts; no system with such a glibc",
)
def glibc_too_old(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """An old glibc, and no torch, or one that cannot be loaded for that reason."""
    torch, machine, libc = installed_torch(facts), machine_of(facts), libc_of(facts)
    error = _import_error(facts)
    if machine not in MACHINES or not shows_gpu(facts) or (torch is not None and "GLIBC_" not in error):
        return
    table, own = load("torch_releases"), version_or_none(libc[1])
    releases = table["release"]
    needed = releases[-1][machine]["glibc"]
    if libc[0] != "glibc" or own is None or own >= Version(needed):
        return
    older = [row["version"] for row in releases if Version(row[machine]["glibc"]) <= own]
    said = next((line for line in error.splitlines() if "GLIBC_" in line), "")
    yield Finding(
        f"glibc {libc[1]} is too old for torch's wheels, which need {needed}",
        (
            Evidence("glibc", libc[1], "the interpreter's C library"),
            *((Evidence("import torch", said),) if said else ()),
            *(
                (Evidence("last release for it", f"torch {older[-1]}", f"table of {table['collected']}"),)
                if older
                else ()
            ),
        ),
        reinstall_torch(facts),
    )


@cause(
    "A09",
    "the C library is glibc",
    layer=Layer.PYTHON,
    explains=("torch:missing", "torch:import"),
    why="torch's wheels and NVIDIA's driver libraries need glibc. Alpine Linux uses musl.",
    example="FROM python:3.12-alpine: No matching distribution found for torch",
    fix="Use an image with glibc, such as python:3.12-slim.",
    sources="PEP 656",
    tested="facts; no musl",
)
def musl(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The interpreter is linked with musl, and there is no torch that can be imported."""
    interpreter = need(facts.interpreter)
    if libc_of(facts)[0] != "musl" or not shows_gpu(facts):
        return
    if installed_torch(facts) is None or _import_error(facts):
        yield Finding(
            "the interpreter uses musl, for which torch has no wheels",
            (Evidence("C library", " ".join(libc_of(facts)), interpreter.path),),
            Fix("Use an image with glibc: python:3.12-slim, Debian, Ubuntu, RHEL."),
        )


@cause(
    "A10",
    "on a Jetson before JetPack 7, torch is NVIDIA's build for Jetson",
    layer=Layer.WHEEL,
    explains=("torch:cpu-build", "torch:unavailable", "torch:init", "torch:compute", "torch:import", "triton:missing"),
    why="Jetson Orin and older have GPUs (sm_87, sm_72) whose code no other GPU shares, and the libraries of Jetson "
    "Linux. PyTorch's wheels for aarch64 are for servers, and uv's --torch-backend=auto selects one of these because "
    "it considers only the driver version.",
    example="pip install torch on a Jetson AGX Orin: no kernel image is available for execution on the device",
    fix="Install the wheel that NVIDIA builds for this JetPack.",
    sources="bitsandbytes PR1941 and #1930, jax#40487",
    tested="facts; no Jetson",
)
def server_wheel_on_jetson(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """Jetson Linux before release 38, and a torch without code for a Tegra."""
    torch, system = installed_torch(facts), need(facts.system)
    if torch is None or not is_old_jetson(facts) or set(TEGRA_WITHOUT_WHEELS).intersection(torch.architectures):
        return
    if torch.cuda and not torch.architectures:
        return  # its code is not known
    backends = [one for one in _present(facts.indexes) if one.name.endswith("torch-backend")]
    fix = reinstall_torch(facts)
    if backends:  # uv goes by the driver's version alone, and takes a wheel for servers
        variables = [unset(one.source) for one in backends if one.source in facts.variables]
        places = joined(list(dict.fromkeys(one.source for one in backends)))
        fix = Fix(
            f"Remove torch-backend from {places}: it selects wheels for servers. {fix.summary}",
            (*variables, *fix.commands),
        )
    yield Finding(
        f"torch {torch.version} is not a build for this Jetson",
        (
            Evidence("Jetson Linux", system.tegra, "/etc/nv_tegra_release"),
            version_file(torch),
            code_list(torch),
            *(Evidence(f"{one.tool} {one.name}", one.value, one.source) for one in backends),
        ),
        fix,
    )


def _present(indexes: tuple[IndexSetting, ...] | Unavailable) -> tuple[IndexSetting, ...]:
    return () if isinstance(indexes, Unavailable) else indexes


@cause(
    "A11",
    "on Thor, torch is built for CUDA 13",
    layer=Layer.WHEEL,
    explains=("torch:compute",),
    why="CUDA 13 gave Thor its number, sm_110. Builds for CUDA 12.8 have neither code for it nor PTX that could be "
    "compiled for it, so every operation fails.",
    example="torch 2.9.1+cu128 on a Jetson AGX Thor: no kernel image is available",
    fix="Install a build for CUDA 13 from PyTorch's own index.",
    sources="openral PR167, cuvis-ai PR107",
    tested="facts; no Thor",
)
def cuda_12_on_thor(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU of 11.0, and a build for CUDA 12 without code for it."""
    torch = installed_torch(facts)
    if torch is not None and gpus_of_entry(facts, torch, "A11"):
        yield Finding(
            f"torch {torch.version} has no code for Thor (sm_110), which only builds for CUDA 13 have",
            (version_file(torch), code_list(torch), gpu_names(facts)),
            reinstall_torch(facts),
        )


@cause(
    "A12",
    "on aarch64, the GPU is newer than Turing",
    layer=Layer.WHEEL,
    explains=("torch:compute",),
    why="PyTorch's wheels for aarch64 start at sm_80. The T4G of AWS G5g instances is a Turing GPU (sm_75).",
    example="torch on g5g.xlarge: no kernel image is available for execution on the device",
    fix="Build torch from source with TORCH_CUDA_ARCH_LIST=7.5, or use AWS's Deep Learning Containers.",
    sources="aws/deep-learning-containers PR6231",
    tested="facts; no T4G",
)
def turing_on_aarch64(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A GPU of 7.5 next to an aarch64 CPU, and no code for it."""
    torch = installed_torch(facts)
    if torch is not None and gpus_of_entry(facts, torch, "A12"):
        yield Finding(
            f"torch {torch.version} has no code for the T4G (sm_75): no wheel for aarch64 has it",
            (version_file(torch), code_list(torch), gpu_names(facts)),
            Fix(
                "Use the torch of AWS's Deep Learning Containers for Graviton, which has code for it, or build torch "
                "from source with TORCH_CUDA_ARCH_LIST=7.5."
            ),
        )


@cause(
    "A18",
    "Python is built for the CPU architecture of this machine",
    layer=Layer.CONTAINER,
    explains=("cuda:*", "nvml:*", "torch:unavailable", "torch:init", "torch:import", "torch:hang", "torch:signal"),
    why="An image for another architecture runs in an emulator, without NVIDIA's libraries and driver calls.",
    example="an image for linux/amd64 on a GH200 or a DGX Spark",
    fix="Pull the image for this platform, or build it with --platform.",
    sources="ComfyUI-Nvidia-Docker#96, xinference#4256",
    tested="facts; no emulator was run",
)
def emulated(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The interpreter is for another CPU than the machine's, where a GPU or its driver shows."""
    system = need(facts.system)
    machine = "" if isinstance(facts.interpreter, Unavailable) else facts.interpreter.machine
    foreign = machine in MACHINES and system.machine in MACHINES and machine != system.machine
    if not shows_gpu(facts) or not (system.emulator or foreign):
        return
    own = system.machine if foreign else "aarch64" if machine == "x86_64" else "x86_64"
    platform = {"aarch64": "linux/arm64", "x86_64": "linux/amd64"}[own]
    yield Finding(
        f"Python runs in an emulator: it is built for {machine or system.machine}, but the machine is not",
        (
            Evidence("interpreter", machine or "unknown", "its ELF header"),
            Evidence("kernel", system.machine, "uname"),
            *((Evidence("emulator", system.emulator),) if system.emulator else ()),
        ),
        Fix(f"Use the image for {platform}: pull or build it again with --platform={platform}."),
    )
