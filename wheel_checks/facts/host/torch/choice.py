"""Which torch build is right for a host: its driver, its GPUs, its CPU, its Python and its C library."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.gpu.targets import runs_on
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.machine import System
from wheel_checks.facts.host.software import IndexSetting, Installed, Interpreter
from wheel_checks.facts.host.tables import DriverCuda, HostGpu
from wheel_checks.model import Unavailable
from wheel_checks.parsing import version_or_none

_CPU_INDEX = re.compile(r"/whl/(?:\w+/)*cpu\b")

COMPANIONS = ("torchvision", "torchaudio")
MACHINES = ("x86_64", "aarch64")  # for which there are torch wheels with CUDA


@dataclass(frozen=True, slots=True)
class Build:
    """A CUDA torch build: ``version`` "2.11.0", ``backend`` as PyTorch's index calls it ("cu126"; "" for the package
    index), ``cuda`` "12.6", and the machine code in it, () where we do not know it.
    """

    version: str
    backend: str
    cuda: str
    code: tuple[str, ...]

    @property
    def full_version(self) -> str:
        """With the local part that PyTorch's index gives it: 2.11.0+cu126; 2.11.0 on the package index."""
        return f"{self.version}+{self.backend}" if self.backend else self.version

    @property
    def label(self) -> str:
        """Such as ``torch 2.11.0 for CUDA 13.0``."""
        return f"torch {self.version} for CUDA {self.cuda}"

    def supports(self, driver: DriverCuda | None, gpus: Iterable[HostGpu]) -> bool:
        """Whether the driver can run it, by major versions, and every GPU of a known capability has code in it."""
        if driver is not None and driver.major < Version(self.cuda).major:
            return False
        return not self.code or all(runs_on(self.code, gpu.product).how != "none" for gpu in gpus if gpu.sm)


def machine_of(facts: HostFacts) -> str:
    """The machine for which wheels are wanted: the interpreter's, else the kernel's; "" when neither is known."""
    if isinstance(facts.interpreter, Interpreter) and facts.interpreter.machine:
        return facts.interpreter.machine
    return facts.system.machine if isinstance(facts.system, System) else ""


def libc_of(facts: HostFacts) -> tuple[str, str]:
    """The C library of the interpreter, else of the system, and its version; ("", "") when neither is known."""
    for section in (facts.interpreter, facts.system):
        if not isinstance(section, Unavailable) and section.libc[0]:
            return section.libc
    return "", ""


def python_tag(interpreter: Interpreter | Unavailable) -> str:
    """The ABI tag of its wheels, such as cp312 and cp313t; "" when it is unknown.

    For another implementation than CPython it is one that no wheel has (pypy311).
    """
    found = None if isinstance(interpreter, Unavailable) else re.match(r"(\d+)\.(\d+)", interpreter.version)
    if isinstance(interpreter, Unavailable) or found is None:
        return ""
    implementation = "cp" if interpreter.implementation == "cpython" else interpreter.implementation
    return f"{implementation}{found[1]}{found[2]}{'t' * interpreter.free_threaded}"


def known_builds(facts: HostFacts) -> list[Build]:
    """The CUDA builds that this Python and C library can install, oldest release first."""
    machine, python, glibc = machine_of(facts), python_tag(facts.interpreter), _glibc(facts)
    found: list[Build] = []
    for release in load("torch_releases")["release"]:
        wheels = release.get(machine)
        if not wheels or (python and python not in wheels["pythons"]):
            continue
        if glibc is None or Version(wheels["glibc"]) <= glibc:
            found += _builds_of(release["version"], machine)
    return found


def choose(
    builds: Sequence[Build],
    driver: DriverCuda | None,
    gpus: Sequence[HostGpu],
    *,
    keep: str = "",
    own_index: bool = False,
) -> Build | None:
    """The best of the builds that driver and GPUs support, None if none exists.

    The release ``keep``, which is installed, comes first, then the latest one. Of its builds those come first that ask
    no more of the driver than it has, without minor-version compatibility. Then those of PyTorch's own index come
    first, if ``own_index``; else those of the package index. Then the CUDA that is nearest to the driver's. A build
    whose code we do not know is only good enough to keep a release.
    """

    def rank(build: Build) -> tuple[bool, Version, bool, bool, int]:
        excess = _minor(build.cuda) - _minor(driver.version) if driver else 0
        from_there = bool(build.backend) == own_index
        return build.version == keep, Version(build.version), excess <= 0, from_there, -abs(excess)

    fitting = [build for build in builds if build.supports(driver, gpus) and (build.code or build.version == keep)]
    return max(fitting, key=rank, default=None)


def companions(version: str, installed: Installed | Unavailable) -> tuple[str, ...]:
    """The requirements of those companions that are installed, in the releases that fit this torch."""
    if isinstance(installed, Unavailable):
        return ()
    rows = [row for row in load("torch_releases")["release"] if row["version"] == version]
    return tuple(f"{name}{row[name]}" for row in rows for name in COMPANIONS if row[name] and installed.named(name))


def names_torch_index(setting: IndexSetting) -> bool:
    """Whether a setting of an installer names an index of PyTorch's: its address has a folder ``whl``, or it is uv's
    choice of a backend. One that only a tree declares is not the user's.
    """
    if setting.name == "declared-index":
        return False
    return "torch-backend" in setting.name.lower().replace("_", "-") or "/whl" in setting.value


def asks_for_cpu(setting: IndexSetting) -> bool:
    """Whether a setting of an installer asks for builds for the CPU, be it only a tree's."""
    return bool(_CPU_INDEX.search(setting.value)) or (is_backend(setting) and setting.value == "cpu")


def is_backend(setting: IndexSetting) -> bool:
    """Whether it is uv's choice of a torch build."""
    return setting.name.lower().replace("_", "-").endswith("torch-backend")


def configured_index(facts: HostFacts) -> IndexSetting | None:
    """The setting that puts another place than the default index first: a mirror, a folder, an index of a company.

    One that asks for builds for the CPU is a fault, and no place to rely on; one of a tree alone is not the user's.
    """
    settings = () if isinstance(facts.indexes, Unavailable) else facts.indexes
    return next((one for one in settings if one.name in {"index", "find-links"} and not asks_for_cpu(one)), None)


def code_of(version: str, cuda: str, machine: str) -> tuple[str, ...]:
    """The machine code in the build of this release for this CUDA ("13.0"), () where we do not know it."""
    return next((build.code for build in _builds_of(version, machine) if build.cuda == cuda and build.code), ())


def public(version: str) -> str:
    """A version without its local part: 2.11.0 of 2.11.0+cu130."""
    return version.partition("+")[0]


def _builds_of(version: str, machine: str) -> list[Build]:
    rows: list[dict[str, Any]] = [
        row
        for row in load("torch_releases")["index_build"]
        if row["machine"] == machine
        and Version(row["first"]) <= Version(version)
        and ("last" not in row or Version(version) <= Version(row["last"]))
    ]
    own = [Build(version, row["backend"], row["cuda"], tuple(f"sm_{sm}" for sm in row.get("code", ()))) for row in rows]
    code = {build.cuda: build.code for build in own}
    published = [
        Build(version, "", row["cuda"], code[row["cuda"]])
        for row in load("torch_builds")["build"]
        if (row["version"], row["machine"]) == (version, machine) and row["cuda"] in code
    ]
    return own + published


def _minor(cuda: str) -> int:
    """A CUDA version as a number: 1208 of 12.8."""
    version = Version(cuda)
    return version.major * 100 + version.minor


def _glibc(facts: HostFacts) -> Version | None:
    """The glibc of the interpreter, else of the system; None if none exists, or it is unknown."""
    libc = libc_of(facts)
    return version_or_none(libc[1]) if libc[0] == "glibc" else None
