"""A build of torch that does not fit the driver, the GPU or the machine."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from packaging.version import Version

from wheel_checks.commands import shell, unset
from wheel_checks.data import load
from wheel_checks.facts.gpu.drivers import oldest_driver
from wheel_checks.facts.host.advice import newer_driver, reinstall_torch
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import gpus_of_build
from wheel_checks.facts.host.probes import TorchProbe
from wheel_checks.facts.host.tables import driver_cuda, host_gpus
from wheel_checks.facts.host.torch.choice import public
from wheel_checks.facts.host.torch.demands import demands_on
from wheel_checks.facts.host.torch.fit import cuda_major, driver_behind, torch_package
from wheel_checks.facts.host.torch.origin import conda_cpu_builds, cpu_settings, origin
from wheel_checks.model import Evidence, Finding, Fix, Severity
from wheel_checks.rules.host import other_makers
from wheel_checks.rules.host.cause import Layer, causes_in
from wheel_checks.rules.host.observed import in_container
from wheel_checks.rules.host.torch_evidence import (
    driver_shown,
    gpu_names,
    installed_torch,
    missing_library,
    version_file,
)

NO_CUDA = (
    "torch:cpu-build",
    "torch:unavailable",
    "torch:init",
    "triton:missing",
)  # a build for the CPU needs no Triton
COMPATIBILITY = "NVIDIA, CUDA Compatibility"
CUDA_OF_AARCH64 = 13  # of the first wheel for aarch64 with CUDA on the package index, torch 2.11

cause = causes_in(Layer.WHEEL)


@cause(
    "A01",
    "on aarch64, torch before 2.11 is not installed from the package index",
    explains=NO_CUDA,
    why="Until torch 2.10 the package index's wheels for Linux on aarch64 are CPU builds, with the same version as the "
    "CUDA builds for x86_64. METADATA does not show it: only torch/version.py says +cpu.",
    example="pip install torch==2.10.0 on a GH200: AssertionError: Torch not compiled with CUDA enabled",
    fix="Install the same release from PyTorch's own index, or torch 2.11 or later.",
    sources="pytorch#168065, pytorch#160162",
    tested="facts of a Grace host with the version.py and METADATA of the real wheel; no such host",
)
def cpu_wheel_of_aarch64(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A CPU build whose METADATA names no build, on aarch64."""
    torch = installed_torch(facts)
    if torch is None or origin(facts) != "A01":
        return
    fix, driver = reinstall_torch(facts), driver_cuda(facts)
    if driver and driver.major >= CUDA_OF_AARCH64 and not demands_on(facts, "torch"):
        newer = "Or install torch 2.11 or later, which the package index has with CUDA too."
        fix = replace(fix, summary=f"{fix.summary} {newer}")
    yield Finding(
        f"torch {public(torch.version)} from the package index is a CPU build on aarch64; a CUDA build was expected",
        (
            version_file(torch),
            Evidence("METADATA", f"{public(torch.version)}: it does not name the build", "torch's dist-info"),
            *missing_library(torch),
            gpu_names(facts),
        ),
        fix,
    )


@cause(
    "A02",
    "torch is not a CPU-only build",
    explains=NO_CUDA,
    why="PyTorch's own index also has CPU builds, which are selected by a setting of pip or uv, a lock file made on a "
    "host without a GPU, or a Dockerfile. They install and compute without a warning, on the CPU.",
    example="PIP_INDEX_URL ends in /whl/cpu; uv with torch-backend = cpu; torch 2.11.0+cpu in a lock file",
    fix="Correct the setting, then install the build for this driver and GPU.",
    sources="uv#15446",
    tested="facts",
)
def cpu_build(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """A CPU build that was asked for, or whose origin is unknown."""
    torch = installed_torch(facts)
    if torch is None or origin(facts) != "A02":
        return
    settings, package = cpu_settings(facts), torch_package(facts)
    evidence = [version_file(torch), *missing_library(torch), gpu_names(facts)]
    message = f"torch {torch.version} is a CPU build; a CUDA build was expected"
    fix = reinstall_torch(facts)
    if settings:
        evidence += [Evidence(f"{one.tool} {one.name}", one.value, one.source) for one in settings]
        message += f": {settings[0].source or settings[0].tool} selects it"
        variables = [one.source for one in settings if one.source in facts.variables]
        summary = f"Correct the setting in {', '.join(dict.fromkeys(one.source for one in settings))}. {fix.summary}"
        fix = replace(fix, summary=summary, commands=(*map(unset, dict.fromkeys(variables)), *fix.commands))
    elif package is not None:
        source = f"{package.url or package.version}, by {package.installer or 'an unknown installer'}"
        evidence.append(Evidence("installed", source, "torch's dist-info"))
    yield Finding(message, tuple(evidence), fix)


@cause(
    "A05",
    "the driver is new enough for the CUDA version that torch is built for",
    explains=("torch:unavailable", "torch:init"),
    why="A driver runs programs for its own major version of CUDA and older ones. torch 2.11 and later on the package "
    "index are built for CUDA 13, which needs driver 580.",
    example="The NVIDIA driver on your system is too old (found version 12080)",
    fix="Install a build of torch for the driver's CUDA version, or a newer driver.",
    sources="pytorch PR162531; NVIDIA, CUDA Compatibility, Minor Version Compatibility",
    tested="facts; no machine with an old driver",
)
def driver_too_old(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The CUDA of torch is of a newer major version than that of the driver."""
    torch = installed_torch(facts)
    if torch is None or origin(facts) != "A05" or (driver := driver_behind(facts, torch)) is None:
        return
    wanted, fix = cuda_major(torch.cuda), reinstall_torch(facts)
    oldest = oldest_driver(wanted)
    needed = f"driver {oldest} or later" if oldest else "a newer driver"
    table = load("drivers")["major"]
    yield Finding(
        f"the driver is too old for torch {torch.version}: it supports CUDA {driver.version}, but CUDA {wanted} needs "
        f"{needed}",
        (
            version_file(torch),
            driver_shown(driver),
            *(Evidence(f"CUDA {row['cuda']}", f"driver {row['driver']} or newer", COMPATIBILITY) for row in table),
        ),
        replace(fix, summary=f"{fix.summary} Or install {needed}{_how_to_get_a_driver(facts)}."),
    )


def _how_to_get_a_driver(facts: HostFacts) -> str:
    if commands := newer_driver(facts):
        install = shell(commands[0])
        return f": `{install}`; for a data-centre GPU whose driver you cannot update, use NVIDIA's cuda-compat"
    return " on the container's host" if in_container(facts) else ""


@cause(
    "A06",
    "torch is built for a CUDA version that the driver itself supports",
    Severity.NOTE,
    why="A driver runs programs built with any release of its major version of CUDA (minor-version compatibility), so "
    "this is not a fault, though some tools warn about it. Only PTX from the newer toolkit, and calls newer than the "
    "driver, fail.",
    example="torch for CUDA 13.2 with driver 580, which supports 13.0",
    fix="No action is needed.",
    sources="NVIDIA, CUDA Compatibility, Minor Version Compatibility; cuda-doctor's README",
    tested="facts",
)
def minor_version_compatibility(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The same major version, and a newer minor one than the driver's."""
    torch, driver = installed_torch(facts), driver_cuda(facts)
    if torch is None or driver is None or not re.fullmatch(r"\d+\.\d+", torch.cuda):
        return
    wanted, own = Version(torch.cuda), Version(driver.version)
    if wanted.major == own.major and wanted > own:
        yield Finding(
            f"harmless: torch is built for CUDA {torch.cuda} and the driver supports {driver.version}; only the major "
            "version matters",
            (version_file(torch), driver_shown(driver)),
            Fix("No action is needed."),
        )


@cause(
    "A14",
    "conda has selected a CUDA build of torch",
    explains=NO_CUDA,
    why="conda's solver selects a CUDA build only where it detects a driver (the virtual package __cuda). A login node "
    "or an image build has no driver, so it selects the CPU build.",
    example="mamba install pytorch on a login node gives pytorch-2.10.0-cpu_generic_py312",
    fix="Set CONDA_OVERRIDE_CUDA to the CUDA version of the target host, and require a build with cuda in its name.",
    sources="conda#14761",
    tested="facts; no conda was run",
)
def cpu_variant_of_conda(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """The build string of conda's torch says cpu."""
    torch = installed_torch(facts)
    if torch is None or origin(facts) != "A14":
        return
    builds = (Evidence(name, build, "conda-meta") for name, build in conda_cpu_builds(facts))
    message = f"conda has installed a CPU build of torch {torch.version}; a CUDA build was expected"
    yield Finding(message, (*builds, version_file(torch), gpu_names(facts)), reinstall_torch(facts))


@cause(
    "A15",
    "torch is built for GPUs of the installed GPU's vendor",
    explains=("torch:unavailable", "torch:init", "torch:import"),
    why="Builds for ROCm (AMD) and XPU (Intel) have the same name and version as those for CUDA. With another vendor's "
    "GPU they find no device, or do not load.",
    example="torch 2.9.1+rocm6.4 on an H100; torch 2.11.0+cu130 on an MI300X",
    fix="Install the build for this GPU.",
    sources="bark-gui#112",
    tested="facts; no GPU of AMD's or Intel's",
)
def other_accelerator(facts: HostFacts, _expectations: Any) -> Iterator[Finding]:
    """It names hip or xpu, the GPU is NVIDIA's, and it finds none, or there isn't one, of the other maker's.

    Or the GPU is AMD's or Intel's, and it is built for none of these.
    """
    yield from other_makers.wrong_build(facts)
    torch = installed_torch(facts)
    if torch is None or not (torch.hip or torch.xpu) or not host_gpus(facts):
        return
    if gpus_of_build(facts) and not (isinstance(facts.torch, TorchProbe) and facts.torch.available is False):
        return
    name = "ROCm (AMD)" if torch.hip else "XPU (Intel)"
    message = f"torch {torch.version} is built for {name}, but the GPU is made by NVIDIA"
    yield Finding(message, (version_file(torch), gpu_names(facts)), reinstall_torch(facts))
