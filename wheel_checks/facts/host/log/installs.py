"""What an installer says in a log: which torch went and which came, and the package manager of the system."""

import re

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.host.log.facts import Log
from wheel_checks.parsing import version_or_none

MANAGERS = ("apt", "dnf", "zypper", "apk")
_CUDA_OF_AARCH64 = Version("2.11")  # the first torch with CUDA for aarch64 on the package index

_WENT = re.compile(r"^ *(?:Found existing installation: torch |- torch==)(?P<version>[\w.+]{1,60})$", re.MULTILINE)
_CAME = re.compile(
    r"""^\ *\+\ torch==(?P<uv>[\w.+]{1,60})$
      | ^(?:Downloading|Using\ cached)\ (?:\S{0,200}/)?torch-(?P<file>[\w.+]{1,60})-cp
      | ^Successfully\ installed\b(?:\ (?!torch-\d)\S+)*\ torch-(?P<pip>\d[\w.+]{0,60})""",
    re.MULTILINE | re.VERBOSE,
)
_BUILD = re.compile(r"\+(?P<kind>cu|rocm|xpu)(?P<digits>\d*)")
_SYSTEMS = re.compile(
    r"""(?P<apk>\bapk\ add\b|Alpine\ Linux|musllinux_|ld-musl)
      | (?P<zypper>\b(?:open)?SUSE\b|\bzypper\b)
      | (?P<dnf>\.(?:el[789]|el10|fc\d\d|amzn2|amzn2023)\b|Red\ Hat|CentOS|Rocky\ Linux|AlmaLinux|Fedora|Amazon\ Linux
          |\b(?:dnf|yum)\ install\b)
      | (?P<apt>\bUbuntu\b|\bDebian\b|\bapt(?:-get)?\ install\b)""",
    re.VERBOSE,
)


def manager_of(log: Log) -> str:
    """The package manager of the system that the log shows first; apt where it shows none."""
    shown = _SYSTEMS.search(log.text)
    return str(shown.lastgroup) if shown else "apt"


def torch_was_harmed(log: Log) -> bool:
    """Whether the torch that went could use a GPU, and the one that came, as far as the log shows one, may not.

    An update to a build for the same or a newer CUDA of the same major version harms nothing.
    """
    went, came = _WENT.search(log.text), list(_CAME.finditer(log.text))
    if went is None:
        return False
    build = _BUILD.search(went["version"])
    now = next((value for value in came[-1].groupdict().values() if value), "") if came else ""
    if "+cpu" in now:
        return "+cpu" not in went["version"]
    if build is None:
        return False
    if not now:
        return True
    new = _BUILD.search(now)
    if new is None:
        return _harmed_by_index(build, now, "aarch64" if "aarch64" in log.text else "x86_64")
    return new["kind"] != build["kind"] or _major(new["digits"]) < _major(build["digits"])


def _harmed_by_index(build: re.Match[str], now: str, machine: str) -> bool:
    """The same for a torch from the package index, whose version does not say what it is built for."""
    version = version_or_none(now)
    if build["kind"] != "cu":
        return True
    if machine == "aarch64":
        return version is not None and version < _CUDA_OF_AARCH64
    rows = load("torch_builds")["build"]
    cuda = next((row["cuda"] for row in rows if (row["version"], row["machine"]) == (now, machine)), "")
    return bool(cuda) and Version(cuda).major != _major(build["digits"])


def _major(digits: str) -> int:
    """13 of cu130, 9 of cu92."""
    return int(digits[:-1] or 0)
