"""The host that the blocks of a log show: what is certain of it, and the lines that say so.

Only what no other reading fits becomes a fact: of a build from source, of a nightly one and of a Jetson nothing does.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.gpu.drivers import is_known
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.gpu import KfdGpu, OtherDrivers, PciDevice
from wheel_checks.facts.host.log.blocks import Shown, blocks_of
from wheel_checks.facts.host.log.facts import Log
from wheel_checks.facts.host.log.installs import manager_of
from wheel_checks.facts.host.log.merged import CUDA, DRIVER, Seen, merged, torch_of
from wheel_checks.facts.host.machine import System
from wheel_checks.facts.host.probes import ChildEnd, CudaProbe, NvmlGpu, NvmlProbe
from wheel_checks.facts.host.software import Installed, Interpreter, Package, TorchFiles
from wheel_checks.facts.host.torch.choice import COMPANIONS, MACHINES, code_of, public
from wheel_checks.facts.host.torch.fit import is_cpu_build
from wheel_checks.model import Unavailable

SILENT = Unavailable("a log does not say")
UNKNOWN_BUILD = "unknown"

_OFFICIAL = re.compile(r"\d{1,3}\.\d{1,3}\.\d{1,3}(?:\+(?P<build>cu\d{2,3}|cpu|rocm[\d.]{1,8}|xpu))?", re.ASCII)
_PYTHON = re.compile(r"(3\.\d{1,2})\.\d{1,2}", re.ASCII)
_GLIBC = re.compile(r"(?:glibc|ldd|GNU libc)?[ -]*(2\.\d{1,2})", re.ASCII)
_COMPUTES = re.compile(
    r"""NCCL\ INFO\ |Automatically\ detected\ platform\ cuda|CUDA\ out\ of\ memory
      | torch\.cuda\.is_available\(\)[^\n]{0,20}\bTrue\b|^(?:True|cuda:0)$""",
    re.MULTILINE | re.VERBOSE | re.IGNORECASE,
)
_TEGRA = re.compile(r"-tegra\b|nv_tegra_release|\bJetson\b|\(nvgpu\)|\bL4T\b|\bJetPack\b")
_MACHINE = re.compile(r"\bLinux\b[^\n]{0,200}?\b(x86_64|aarch64)\b|\bmanylinux\w{1,20}_(x86_64|aarch64)\b")
_OS_IDS = {"apt": "ubuntu", "dnf": "rhel", "zypper": "suse", "apk": "alpine"}


@dataclass(frozen=True, slots=True)
class LogHost:
    """``facts`` is the host, as far as the log shows one, and ``lines`` where: by the labels torch, build, GPU, driver,
    machine, and the names of packages.

    ``sees_gpu`` is True where torch saw a GPU, False where it saw none, None where the log does not say. ``gpus`` are
    the listed ones. ``numpy`` is the version of NumPy next to torch, "" where it is not shown.
    """

    facts: HostFacts
    lines: Mapping[str, Shown]
    sees_gpu: bool | None = None
    numpy: str = ""

    @property
    def torch(self) -> TorchFiles | None:
        """The torch that the log shows."""
        return None if isinstance(self.facts.installed, Unavailable) else self.facts.installed.torch

    @property
    def knows_build(self) -> bool:
        """Whether it is shown, or known by the tables, what torch is built for."""
        return self.torch is not None and self.torch.cuda != UNKNOWN_BUILD

    @property
    def lists_gpu(self) -> bool:
        """Whether a GPU of NVIDIA's is listed."""
        return isinstance(self.facts.nvml, NvmlProbe) and bool(self.facts.nvml.gpus)


def refutes_cpu_build(log: Log) -> bool:
    """Whether whole blocks of a log show that its last torch is not a build for the CPU next to an NVIDIA GPU.

    The lines of collect_env that look so are then of another machine, or of another time.
    """
    if not any(block.kind == "collect_env" for block in blocks_of(log)):
        return False
    if torch_of(merged(log)) is None:
        return True
    host = host_of(log)
    if host is None or host.torch is None or not host.knows_build:
        return False
    return not is_cpu_build(host.torch) or host.sees_gpu is True or not (host.lists_gpu or "driver" in host.lines)


@lru_cache(maxsize=1)
def host_of(log: Log) -> LogHost | None:
    """The host of a log; None where it shows no torch, or a Jetson, of which other texts decide."""
    shown = merged(log)
    torch = torch_of(shown)
    if torch is None or _TEGRA.search(log.text) or not _OFFICIAL.fullmatch(torch.value):
        return None
    system = _system(shown, log)
    machine = system.machine if isinstance(system, System) else ""
    files = _torch_files(shown, torch.value, machine)
    gpus = tuple(NvmlGpu(number, gpu.value) for number, gpu in enumerate(shown.gpus))
    driver = _known(shown.values.get("driver"), DRIVER)
    nvml = NvmlProbe(ChildEnd(), 0, driver_version=driver if driver and is_known(driver) else "", gpus=gpus)
    facts = replace(
        _silent(),
        system=system,
        pci=SILENT if gpus or driver else _amd_devices(shown),  # without a listed GPU no rule may expect one
        other_drivers=_amd_drivers(shown),
        interpreter=_interpreter(shown, log, machine),
        installed=_installed(shown, files),
        nvml=nvml if gpus or driver else SILENT,
        cuda=_cuda(shown),
    )
    lines = {"torch": torch, **{name: shown.packages[name] for name in COMPANIONS if name in shown.packages}}
    lines |= {"numpy": shown.packages["numpy"]} if "numpy" in shown.packages else {}
    lines |= {"GPU": shown.gpus[0]} if shown.gpus else {}
    lines |= {"AMD GPU": shown.amd[0][0]} if shown.amd else {}
    lines |= {"driver": shown.values["driver"]} if driver else {}
    for label, key in (("build", "cuda"), ("available", "available"), ("machine", "platform")):
        lines |= {label: shown.values[key]} if key in shown.values else {}
    numpy = shown.packages["numpy"].value if "numpy" in shown.packages else ""
    return LogHost(facts, lines, _sees_gpu(shown, log), numpy)


# What the values mean


def _silent() -> HostFacts:
    """Facts whose every section says why it is unknown."""
    names = ("system", "container", "limits", "pci", "driver", "nodes", "services", "other_drivers", "interpreter")
    more = ("installed", "loader", "triton", "indexes", "nvml", "cuda", "torch", "kernel")
    return HostFacts(**dict.fromkeys((*names, *more), SILENT))  # type: ignore[arg-type]  # every one may be Unavailable


def _known(shown: Shown | None, pattern: re.Pattern[str]) -> str:
    return shown.value if shown is not None and pattern.fullmatch(shown.value) else ""


def _system(shown: Seen, log: Log) -> System | Unavailable:
    name = shown.values["os"].value if "os" in shown.values else ""
    platform = shown.values["platform"].value if "platform" in shown.values else ""
    if re.search(r"Windows|macOS|Darwin", name + platform):
        return SILENT
    text = f"{platform}\nLinux {name}" if platform else log.text
    found = {match[1] or match[2] for match in _MACHINE.finditer(text)}
    machine = found.pop() if len(found) == 1 else ""
    if machine not in MACHINES:
        return SILENT
    libc = _GLIBC.search(shown.values["libc"].value) if "libc" in shown.values else None
    wsl = "microsoft" in platform.lower()
    manager = manager_of(log)
    os_id = "debian" if "Debian" in name else _OS_IDS[manager]
    return System(machine, "", os_id, "", ("glibc", libc[1]) if libc else ("", ""), 0, wsl=wsl)


def _interpreter(shown: Seen, log: Log, machine: str) -> Interpreter | Unavailable:
    """The Python version, so that no release is advised that has no wheel for it; its path is unknown."""
    found = _PYTHON.match(shown.values["python"].value) if "python" in shown.values else None
    if found is None:
        return SILENT
    has_pip = not re.search(r"\buv pip\b|\buv (?:run|sync|add)\b", log.text)
    free = "free-threading" in shown.values["python"].value
    return Interpreter(
        path="",
        found="",
        version=f"{found[1]}.0",
        implementation="cpython",
        prefix="",
        base_prefix="",
        purelib="",
        platlib="",
        search_path=(),
        working_directory="",
        include="",
        python_h=True,
        machine=machine,
        libc=("", ""),
        free_threaded=free,
        has_pip=has_pip,
    )


def _torch_files(shown: Seen, version: str, machine: str) -> TorchFiles:
    """What torch is built for: by its own version, by collect_env, else by the table of the package index."""
    official = _OFFICIAL.fullmatch(version)
    build = str(official["build"] or "") if official else ""
    for name in ("torch", "pytorch"):
        if not build and name in shown.packages:
            build = shown.packages[name].value.partition("+")[2]
    cuda = hip = xpu = ""
    from_conda = next((_conda_build(text) for name, text in shown.conda.items() if name == "pytorch"), "")
    if from_conda:
        cuda = "" if from_conda == "cpu" else from_conda
    elif build.startswith("cu"):
        cuda = f"{build[2:-1]}.{build[-1]}"
    elif build.startswith("rocm"):
        hip = build[4:]
    elif build == "xpu":
        xpu = "unknown version"
    elif build != "cpu":
        cuda, hip = _build_shown(shown, version, machine)
    own = build.startswith("cu") or "torch" not in shown.values  # conda's builds of the same CUDA have other code
    code = _code(public(version), cuda, machine) if own and not shown.conda else ()
    return TorchFiles("", version, cuda, hip, xpu, code, bool(cuda))


def _conda_build(text: str) -> str:
    """What a build string of conda's pytorch says: "cpu", "12.9", "" for one that says nothing.

    Such as cpu_generic_py312_h4a3044f_0, cuda129_mkl_py312_h1234567_300, py3.12_cuda12.4_cudnn9.1.0_0.
    """
    if re.search(r"(?:^|_)cpu(?:_|$)", text):
        return "cpu"
    found = re.search(r"(?:^|_)cuda(\d{2})\.?(\d)(?:_|$)", text)
    return f"{found[1]}.{found[2]}" if found else ""


def _code(version: str, cuda: str, machine: str) -> tuple[str, ...]:
    """The code of a build of PyTorch's index; () where no table has it."""
    if known := code_of(version, cuda, machine):
        return known
    rows = load("torch_releases")["former_build"]
    fits = (row for row in rows if (row["cuda"], row["machine"]) == (cuda, machine) and version in row["releases"])
    return next((tuple(f"sm_{sm}" for sm in row["code"]) for row in fits), ())


def _build_shown(shown: Seen, version: str, machine: str) -> tuple[str, str]:
    """CUDA and HIP as collect_env has them, or by the table; ``UNKNOWN_BUILD`` where neither says."""
    values = {key: shown.values[key].value for key in ("cuda", "hip") if key in shown.values}
    if "cuda" in values and "hip" in values:
        if re.match(r"\d+\.\d", values["hip"]):
            return "", values["hip"]
        if CUDA.fullmatch(values["cuda"]):
            return values["cuda"], ""
        if values["cuda"] in {"None", "Could not collect"} and values["hip"] == "N/A":
            return "", ""
    if shown.conda or not machine or "torch" in shown.values:
        return UNKNOWN_BUILD, ""
    rows = load("torch_builds")["build"]
    row = next((row for row in rows if (row["version"], row["machine"]) == (version, machine)), None)
    return (str(row["cuda"]), "") if row else (UNKNOWN_BUILD, "")


def _installed(shown: Seen, torch: TorchFiles) -> Installed:
    """Torch and its companions; what a companion requires is in the table of releases, for no list says it."""
    conda = {name: build for name, build in shown.conda.items() if name == "pytorch"}
    installer = "conda" if conda else ""
    own = shown.packages.get("torch")
    packages = [Package("torch", own.value if own else torch.version, "", installer)]
    for name in COMPANIONS:
        if name in shown.packages and _OFFICIAL.fullmatch(shown.packages[name].value):
            version = shown.packages[name].value
            build = version.partition("+")[2]
            packages.append(Package(name, version, "", installer, requires=_requires(name, version), build=build))
    return Installed(tuple(packages), torch, conda=conda or None)


def _requires(name: str, version: str) -> tuple[str, ...]:
    """The torch of a release of a companion, where the table has one; torchaudio pins it until 2.10."""
    wanted = [row["version"] for row in load("torch_releases")["release"] if row[name] == f"=={public(version)}"]
    return (f"torch=={wanted[0]}",) if len(wanted) == 1 else ()


def _amd_devices(shown: Seen) -> tuple[PciDevice, ...]:
    return tuple(PciDevice("", "1002", chip, "038000", "amdgpu") for _, chip in shown.amd)


def _amd_drivers(shown: Seen) -> OtherDrivers | Unavailable:
    """The GPUs that rocminfo lists: amdkfd has them."""
    gpus = tuple(KfdGpu(number, target.value, device=chip) for number, (target, chip) in enumerate(shown.amd, 1))
    return OtherDrivers(gpus=gpus) if gpus else SILENT


def _cuda(shown: Seen) -> CudaProbe | Unavailable:
    """The CUDA of the driver, where the table of drivers has it."""
    version = _known(shown.values.get("driver_cuda"), CUDA)
    if version not in {row["cuda"] for row in load("drivers")["branch"]}:
        return SILENT
    number = Version(version)
    return CudaProbe(ChildEnd(), 0, driver_cuda=number.major * 1000 + number.minor * 10)


def _sees_gpu(shown: Seen, log: Log) -> bool | None:
    available = shown.values["available"].value if "available" in shown.values else ""
    if available in {"True", "Yes"} or _COMPUTES.search(log.text):
        return True
    return False if available in {"False", "No"} else None
