"""What to do about it: complete commands for this interpreter, this installer and this driver.

The commands of a :class:`Fix` are steps, in their order. Where they are alternatives, every one has a note that says
when it is meant, and none may be run unread.
"""

import re
from collections.abc import Sequence
from dataclasses import replace

from packaging.version import Version

from wheel_checks.commands import CHECK_XPU, Command, Step, export
from wheel_checks.data import load
from wheel_checks.facts.gpu.drivers import oldest_driver
from wheel_checks.facts.host.commands import (
    check_torch,
    install,
    install_with_conda,
    install_with_python,
    is_of_conda,
    noted,
    python_command,
    repair,
)
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.machine import Container
from wheel_checks.facts.host.other_gpus import build_of_others
from wheel_checks.facts.host.software import Interpreter, TritonFacts
from wheel_checks.facts.host.tables import (
    DriverCuda,
    HostGpu,
    driver_cuda,
    driver_version,
    host_gpus,
)
from wheel_checks.facts.host.torch.choice import (
    MACHINES,
    Build,
    asks_for_cpu,
    choose,
    companions,
    configured_index,
    known_builds,
    libc_of,
    machine_of,
    names_torch_index,
    public,
    python_tag,
)
from wheel_checks.facts.host.torch.demands import demands_on, overwritten_by, refused_by, users_of
from wheel_checks.facts.host.torch.fit import gpus_without_code, torch_files
from wheel_checks.facts.host.triton_use import release_that_knows, role_for, variable_of
from wheel_checks.goal import Goal
from wheel_checks.model import Fix, Unavailable
from wheel_checks.phrases import joined

FITTING_TORCH = Goal(fitting_torch=True)
SHOWN = 3  # demands in a sentence
RECOMMENDED_PYTHON = "3.12"  # every torch release since 2.2 has wheels for it

_NEWEST_CUDA = 13  # for which there are torch builds
_TURING = 75  # the oldest GPUs that the open kernel modules drive
_SBSA_JETSON = 38  # the release of Jetson Linux (JetPack 7) from which on the wheels for servers run there


def reinstall_torch(facts: HostFacts) -> Fix:
    """How to get the right torch build, with its companions where they are installed, and how to see that it works.

    What is installed and requires torch accepts the release. It stays as it is where it has a build that fits; else the
    latest that has one is taken. When nothing shows what the driver supports, the commands are alternatives.
    """
    if obstacle := _obstacle(facts) or _others_fix(facts):
        return obstacle
    builds, gpus, driver = known_builds(facts), host_gpus(facts), driver_cuda(facts)
    if is_of_conda(facts):
        return _conda_fix(facts, driver)
    if driver is None:
        return _undecided_fix(facts, _accepted(facts, builds), gpus)
    build, any_build = _choose(facts, _accepted(facts, builds), driver, gpus), _choose(facts, builds, driver, gpus)
    if any_build is None:
        return _no_build_fix(facts, builds, driver, gpus)
    return _refused_fix(facts, any_build) if build is None else _build_fix(facts, build, driver, gpus)


def _build_fix(facts: HostFacts, build: Build, driver: DriverCuda, gpus: Sequence[HostGpu]) -> Fix:
    """Install this build; which ones a configured index has only ``wheelproof doctor --fix`` can say."""
    if setting := configured_index(facts):
        summary = f"Install {build.label} from the configured index ({setting.source}), if it has it; the plan is shown"
        return Fix(f"{summary} before anything is changed.", (repair(facts),), FITTING_TORCH)
    return Fix(_summary(build, driver, gpus), (*_install_build(facts, build), check_torch(facts)), FITTING_TORCH)


def right_build(facts: HostFacts) -> Build | None:
    """The build that :func:`reinstall_torch` installs; None when it installs none, or leaves a choice."""
    driver = driver_cuda(facts)
    if driver is None or is_of_conda(facts) or _obstacle(facts) or build_of_others(facts):
        return None
    return _choose(facts, _accepted(facts, known_builds(facts)), driver, host_gpus(facts))


def new_environment(facts: HostFacts, python: str) -> Fix:
    """A new environment with another Python ("3.12", "3.13t"), and the right torch build in it."""
    if isinstance(facts.interpreter, Interpreter):
        version, free = python.removesuffix("t"), python.endswith("t")
        other = replace(facts.interpreter, version=version, implementation="cpython", free_threaded=free)
        facts = replace(facts, interpreter=other)
    build = choose(known_builds(facts), driver_cuda(facts), host_gpus(facts))
    wanted = f"torch=={build.version}" if build else "torch"
    commands = install_with_python(facts, python, wanted, index=build.backend if build else "")
    return Fix(f"Create an environment with Python {python}, and install torch there.", commands)


def newer_ptxas(facts: HostFacts, triton: TritonFacts, sm: int) -> Fix:
    """A ptxas that knows the GPU ``sm`` (103), next to Triton's own, named to it by the variable that it reads.

    It is of the driver's major version, since no driver runs what a newer one made; torch's own pins stay.
    """
    driver, known = driver_cuda(facts), release_that_knows(sm)
    later = f"Triton {known[0]}, which torch {known[1]} requires, includes a ptxas that supports it" if known else ""
    rows = load("triton_releases")["gpu"]
    since = next((Version(row["ptxas"]) for row in rows if row["sm"] == sm), None)
    if since is None:
        return Fix(f"It needs a newer ptxas; {later or f'it is unknown which version supports sm_{sm}'}.")
    if isinstance(facts.interpreter, Unavailable) or (driver and driver.major < since.major):
        return Fix(
            f"It needs a ptxas of CUDA {since} or later, and a driver for that CUDA; {later or 'none is known'}."
        )
    old = driver is not None and driver.major == 12
    name, folder = ("nvidia-cuda-nvcc-cu12", "cuda_nvcc") if old else ("nvidia-cuda-nvcc", "cu13")
    path = f"{facts.interpreter.purelib}/nvidia/{folder}/bin/ptxas"
    return Fix(
        f"Set Triton's ptxas to one of CUDA {since} or later" + (f"; {later}." if later else "."),
        (
            *install(facts, f"{name}>={since}", no_deps=True),
            export(variable_of(role_for(triton, sm)), path),
        ),
    )


def newer_driver(facts: HostFacts) -> tuple[Command, ...]:
    """The commands that install the oldest driver for every torch there is, in the words of this distribution.

    None in a container, whose driver is the host's, and on WSL, whose driver is that of Windows. GPUs before Turing
    have no open kernel modules, which all since Blackwell need.
    """
    inside = isinstance(facts.container, Container) and bool(facts.container.kind)
    if inside or isinstance(facts.system, Unavailable) or facts.system.wsl or facts.system.tegra:
        return ()
    branch = oldest_driver(_NEWEST_CUDA)
    closed = any(0 < gpu.sm < _TURING for gpu in host_gpus(facts))
    if facts.system.os_id in {"ubuntu", "pop", "linuxmint"}:
        return _driver_by("apt-get", f"nvidia-driver-{branch}-server{'' if closed else '-open'}")
    if closed:
        return ()
    if facts.system.os_id in {"rhel", "rocky", "almalinux", "fedora", "centos", "amzn"}:
        return _driver_by("dnf", "nvidia-open")
    return _driver_by("apt-get", "nvidia-open") if facts.system.os_id == "debian" else ()


def _driver_by(installer: str, package: str) -> tuple[Command, ...]:
    return Command(("sudo", installer, "install", package)), Command(("sudo", "reboot"))


# Which fix


def _choose(
    facts: HostFacts, builds: Sequence[Build], driver: DriverCuda | None, gpus: Sequence[HostGpu]
) -> Build | None:
    """The best build, from PyTorch's own index where that is configured, or to overrule a setting for the CPU."""
    torch = torch_files(facts)
    if torch is not None and gpus_without_code(facts, torch):  # another one whose code is unknown will not do
        builds = [build for build in builds if build.code]
    settings = () if isinstance(facts.indexes, Unavailable) else facts.indexes
    own = any(names_torch_index(one) or asks_for_cpu(one) for one in settings)
    return choose(builds, driver, gpus, keep=_installed_release(facts), own_index=own)


def _accepted(facts: HostFacts, builds: Sequence[Build]) -> list[Build]:
    """The builds that everything accepts that is installed and requires torch, or shares files with its libraries."""
    return [build for build in builds if not refused_by(facts, build) and not overwritten_by(facts, build)]


def _refused_fix(facts: HostFacts, build: Build) -> Fix:
    """No known build is accepted: the index may have one that the tables do not know, and the planner asks it."""
    demands = dict.fromkeys(map(str, demands_on(facts, "torch")))
    for package in overwritten_by(facts, build):
        users = joined([user.name for user in users_of(facts, package.name)][:SHOWN])
        demands[f"{users} requires {package.name}, whose files would be overwritten by those for CUDA {build.cuda}"] = (
            None
        )
    summary = (
        f"{joined(list(demands)[:SHOWN])}, and no known CUDA build that runs on this host satisfies it (the best one "
        f"would be {build.label}). The command asks the index, and changes nothing without a plan that satisfies it."
    )
    return Fix(summary, (repair(facts),), FITTING_TORCH)


def _installed_release(facts: HostFacts) -> str:
    torch = torch_files(facts)
    return public(torch.version) if torch else ""


def _install_build(facts: HostFacts, build: Build) -> tuple[Step, ...]:
    """A build of another index looks like the installed one to an installer, so it has to be forced."""
    requirements = (f"torch=={build.version}", *companions(build.version, facts.installed))
    forced = bool(build.backend) or build.version == _installed_release(facts)
    return install(facts, *requirements, force=forced, index=build.backend)


def _summary(build: Build, driver: DriverCuda, gpus: Sequence[HostGpu]) -> str:
    where = "PyTorch's own index" if build.backend else "the package index"
    reasons = [f"the driver supports CUDA {driver.version} ({driver.source})"]
    known = dict.fromkeys(str(gpu.product) for gpu in gpus if gpu.sm and build.code)
    unknown = dict.fromkeys(gpu.name for gpu in gpus if not gpu.sm or not build.code)
    reasons += [f"it has code for {', '.join(known)}"] if known else []
    reasons += [f"it is unknown whether it has code for {', '.join(unknown)}"] if unknown else []
    return f"Install {build.label} from {where}: {', and '.join(reasons)}."


def _undecided_fix(facts: HostFacts, builds: Sequence[Build], gpus: Sequence[HostGpu]) -> Fix:
    """One command for each major CUDA version: only the driver can say, and it did not."""
    commands: list[Step] = []
    newer = " or later"
    for major in sorted({Version(build.cuda).major for build in builds}, reverse=True):
        suitable = [build for build in builds if Version(build.cuda).major == major]
        build = _choose(facts, suitable, DriverCuda(f"{major}.0", ""), gpus)
        if build is not None:
            *first, last = _install_build(facts, build)  # an environment may have to be made first, once
            commands += [step for step in first if step not in commands]
            commands += noted((last,), f"when nvidia-smi shows CUDA {major}{newer}")
            newer = ""
    version, _where = driver_version(facts)
    found = f"{version} is newer than the table of {load('drivers')['collected']}" if version else "none was found"
    depends = f"the newest CUDA version that the driver supports, which is unknown (driver: {found})"
    if configured_index(facts):  # which builds it has is not known
        return Fix(
            f"Which build is right depends on what the configured index has, and on {depends}. On a host with a "
            "driver and a GPU, `wheelproof doctor --fix` asks that index and shows a plan first."
        )
    summary = (
        f"Which build is right depends on {depends}. `nvidia-smi` shows it as CUDA Version; use the command for that "
        "version."
    )
    return Fix(summary, (*commands, *noted((check_torch(facts),), "afterwards")))


def _no_build_fix(facts: HostFacts, builds: Sequence[Build], driver: DriverCuda, gpus: Sequence[HostGpu]) -> Fix:
    running = [build for build in builds if build.code and build.supports(None, gpus)]
    if not running:
        names = ", ".join(dict.fromkeys(str(gpu.product) for gpu in gpus))
        return Fix(f"No known CUDA build of torch has code for {names}: build torch from source for it.")
    major = min(Version(build.cuda).major for build in running)
    return Fix(
        f"No known CUDA build of torch with code for this GPU runs with a driver for CUDA {driver.version}: install "
        f"a newer driver ({oldest_driver(major)} or later).",
        newer_driver(facts),
    )


def _conda_fix(facts: HostFacts, driver: DriverCuda | None) -> Fix:
    command = install_with_conda(facts, "pytorch=*=*cuda*", cuda=driver.version if driver else "")
    return Fix(
        "Install a CUDA build of pytorch with conda, even where it detects no GPU.", (command, check_torch(facts))
    )


def _obstacle(facts: HostFacts) -> Fix | None:
    """What to do where there is no torch wheel with CUDA at all, None where there may be one."""
    machine, libc = machine_of(facts), libc_of(facts)
    if not machine:
        return Fix("The platform of this host could not be read: let uv choose.", install(facts, "torch", index="auto"))
    if is_old_jetson(facts):
        return Fix(
            "PyTorch's wheels have no code for this Jetson. Install the wheel that NVIDIA builds for its JetPack: see "
            '"Installing PyTorch for Jetson Platform" in NVIDIA\'s documentation (JetPack 6: index jp6/cu126 of the '
            "Jetson AI Lab)."
        )
    if machine not in MACHINES:
        return Fix(f"torch has no wheels with CUDA for {machine}: build torch from source.")
    if libc[0] == "musl":
        return Fix("torch has no wheels for musl: use an image with glibc (Debian, Ubuntu, RHEL).")
    if not known_builds(facts):
        return _too_old_or_new(facts)
    return None


def _others_fix(facts: HostFacts) -> Fix | None:
    """The build for AMD's or Intel's GPUs, where what is installed accepts its release; None for NVIDIA's."""
    build = build_of_others(facts)
    if build is None:
        return None
    label = f"torch {build.torch} for {build.backend}"
    if machine_of(facts) != "x86_64":
        maker = build.device.maker
        return Fix(f"PyTorch's index has builds for {maker}'s GPUs only on x86_64: build torch from source.")
    refused = next((one for one in demands_on(facts, "torch") if not one.accepts(Version(build.torch))), None)
    if refused is not None:
        return Fix(f"{label} is the known build for this GPU, but {refused}.")
    if setting := configured_index(facts):
        return Fix(f"Install {label} from the configured index ({setting.source}), if it has it.")
    wanted = f"torch=={build.torch}", *companions(build.torch, facts.installed)
    check = python_command(facts, "-c", CHECK_XPU) if build.backend == "xpu" else check_torch(facts)
    return Fix(f"Install {label}.", (*install(facts, *wanted, force=True, index=build.backend), check))


def _too_old_or_new(facts: HostFacts) -> Fix:
    """The Python, or else the C library, has no wheel."""
    tag = python_tag(facts.interpreter)
    releases = [row[machine_of(facts)] for row in load("torch_releases")["release"]]
    if not tag or not any(tag in row["pythons"] for row in releases[-1:]):
        return new_environment(facts, RECOMMENDED_PYTHON)
    return Fix(
        f"glibc {libc_of(facts)[1]} is older than the {releases[-1]['glibc']} that torch's wheels need: use a newer "
        "system, or a container image with one."
    )


def is_old_jetson(facts: HostFacts) -> bool:
    """Whether this is a Jetson for which PyTorch's wheels have no code: all before JetPack 7 (L4T release 38)."""
    if isinstance(facts.system, Unavailable):
        return False
    release = re.search(r"\bR(\d+)\b", facts.system.tegra)
    return release is not None and int(release[1]) < _SBSA_JETSON
