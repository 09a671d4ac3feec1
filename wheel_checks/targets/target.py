"""A target: one Python on one platform, described without being there; for some commands also on Windows and macOS."""

from __future__ import annotations

import functools
import platform
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from packaging.tags import Tag, compatible_tags, cpython_tags, mac_platforms

from wheel_checks.data import load
from wheel_checks.errors import UsageError

# Plain "x86_64" and "aarch64" mean, as of November 2026, glibc 2.39, which RHEL 10 and Ubuntu 24.04 ship (their glibc
# packages), and DGX OS 7, which is built on Ubuntu 24.04. Debian 13 has 2.41. An older server is requested by its own
# policy: manylinux_2_34_aarch64 for RHEL 9. uv's plain "aarch64-unknown-linux-gnu" means manylinux_2_28.
DEFAULT_GLIBC = (2, 39)

# The oldest glibc whose wheels are accepted (PEP 600 and PEP 599, PEP 513 for x86_64), as packaging.tags has it.
OLDEST_GLIBC = {"x86_64": (2, 5), "aarch64": (2, 17)}

LEGACY_MANYLINUX = {"manylinux2014": (2, 17), "manylinux2010": (2, 12), "manylinux1": (2, 5)}  # PEP 599, 571, 513
_LEGACY_NAMES = {glibc: name for name, glibc in LEGACY_MANYLINUX.items()}

OLDEST_MACOS = {"x86_64": (10, 9), "aarch64": (11, 0)}  # of the Pythons from 3.8 on (python.org)

OLDEST_PYTHON = (3, 8)  # before it, CPython's ABI tags have an "m"
OLDEST_FREE_THREADED = (3, 13)  # PEP 703

LINUX, WINDOWS, MACOS = "Linux", "Windows", "macOS"
NEWEST_MACOS = (
    26,
    0,
)  # plain "macosx_arm64" means macOS 26 of September 2025, which accepts the wheels of all before it

_ALIASES = {"arm64": "aarch64", "amd64": "x86_64"}
_WINDOWS_NAMES = {"x86_64": "AMD64", "aarch64": "ARM64", "i686": "x86"}  # platform.machine() there
_MACOS_NAMES = {"x86_64": "x86_64", "aarch64": "arm64"}
_PLATFORM = re.compile(
    r"(?:(?P<policy>manylinux_2_(?P<minor>\d{1,2})|manylinux\d{1,4}|linux)_)?(?P<machine>\w+)", re.ASCII
)
_MUSL_PLATFORM = re.compile(r"musllinux_1_(?P<minor>\d{1,2})_(?P<machine>\w+)", re.ASCII)
_WINDOWS_PLATFORM = re.compile(r"win(?:dows)?_(?P<machine>amd64|x86_64|arm64|aarch64)")
_MACOS_PLATFORM = re.compile(
    r"mac(?:osx?)?_(?:(?P<major>\d{1,2})_(?P<minor>\d{1,2})_)?(?P<machine>arm64|aarch64|x86_64)"
)
_PYTHON = re.compile(r"(?:cp)?3\.?(?P<minor>\d{1,2})(?:\.(?P<patch>\d{1,2}))?(?P<threads>t?)", re.ASCII)

KNOWN_PLATFORMS = (
    "x86_64 (or amd64), aarch64 (or arm64), all, manylinux_2_<minor>_<machine>, manylinux2014_<machine>, "
    "musllinux_1_<minor>_<machine>"
)
OTHER_PLATFORMS = "win_amd64, win_arm64, macosx_<major>_<minor>_arm64, macosx_<major>_<minor>_x86_64"
KNOWN_PYTHONS = "3.8 or newer, written as 3.12, 3.12.4, cp312 or 312, with t for free-threaded builds since 3.13"


@dataclass(frozen=True, slots=True)
class Target:
    """``python`` is (major, minor), ``free_threaded`` the "t" builds; ``machine`` is "x86_64" or "aarch64", and "i686"
    on Windows if a wheel says so; ``glibc`` the latest glibc (major, minor) whose manylinux wheels the target accepts,
    (0, 0) on another ``system``; ``macos`` is the version of macOS, ``musl`` that of musl if it is the C library of
    Linux, (0, 0) elsewhere.

    ``patch`` is the requested patch release, None for the newest of ``python`` by ``data/python_releases.toml``.
    """

    python: tuple[int, int]
    machine: str
    glibc: tuple[int, int]
    free_threaded: bool = False
    patch: int | None = None
    system: str = LINUX
    macos: tuple[int, int] = (0, 0)
    musl: tuple[int, int] = (0, 0)

    @property
    def interpreter(self) -> str:
        """The interpreter tag, with the "t" of free-threaded builds: ``cp312``, ``cp313t``."""
        return f"cp{self.python[0]}{self.python[1]}" + ("t" if self.free_threaded else "")

    @property
    def platform(self) -> str:
        """The latest platform tag that the target accepts: ``manylinux_2_39_aarch64``, ``win_amd64``."""
        if self.system == WINDOWS:
            return "win32" if self.machine == "i686" else f"win_{_WINDOWS_NAMES[self.machine].lower()}"
        if self.system == MACOS:
            return f"macosx_{self.macos[0]}_{self.macos[1]}_{_MACOS_NAMES[self.machine]}"
        if any(self.musl):
            return f"musllinux_{self.musl[0]}_{self.musl[1]}_{self.machine}"
        return f"manylinux_{self.glibc[0]}_{self.glibc[1]}_{self.machine}"

    @property
    def label(self) -> str:
        """For people: ``cp312 aarch64``, ``cp312 Windows x86_64``."""
        where = "musl" if any(self.musl) else "" if self.system == LINUX else self.system
        return " ".join([self.interpreter, *([where] if where else []), self.machine])

    @property
    def described(self) -> str:
        """The label with the deciding part of platform tags: ``cp312 aarch64 with glibc 2.39``."""
        if any(self.musl):
            return f"{self.interpreter} {self.machine} with musl {self.musl[0]}.{self.musl[1]}"
        if self.system == LINUX:
            return f"{self.label} with glibc {self.glibc[0]}.{self.glibc[1]}"
        version = f" {self.macos[0]}.{self.macos[1]}" if self.system == MACOS else ""
        return f"{self.interpreter} {self.system}{version} {self.machine}"

    @property
    def id(self) -> str:
        """Unambiguous but for the patch release: ``cp312-manylinux_2_39_aarch64``."""
        return f"{self.interpreter}-{self.platform}"

    @property
    def python_full_version(self) -> str:
        """Such as ``3.12.16``."""
        version = f"{self.python[0]}.{self.python[1]}"
        return f"{version}.{load('python_releases')['newest'].get(version, 0) if self.patch is None else self.patch}"

    def supported_tags(self) -> Mapping[Tag, int]:
        """Every tag that an installer accepts there, with its rank: 0 is preferred most.

        The order is packaging's, and so pip's on such a machine: CPython's own ABI, the stable ABI, no ABI, pure
        Python; within each the platforms from ``linux_<machine>`` and the latest glibc downwards (PEP 425, PEP 600).
        """
        return _ranked_tags(self)

    def markers(self) -> dict[str, str]:
        """The environment of PEP 508 markers on this target; complete, so that nothing of this host shows through.

        Values that cannot be known remotely (``platform_release``, ``platform_version``) are empty.
        """
        names = {WINDOWS: _WINDOWS_NAMES, MACOS: _MACOS_NAMES}.get(self.system, {})
        return {
            "implementation_name": "cpython",
            "implementation_version": self.python_full_version,
            "os_name": "nt" if self.system == WINDOWS else "posix",
            "platform_machine": names.get(self.machine, self.machine),
            "platform_python_implementation": "CPython",
            "platform_release": "",
            "platform_system": {MACOS: "Darwin"}.get(self.system, self.system),
            "platform_version": "",
            "python_full_version": self.python_full_version,
            "python_version": f"{self.python[0]}.{self.python[1]}",
            "sys_platform": {WINDOWS: "win32", MACOS: "darwin"}.get(self.system, "linux"),
        }


@dataclass(frozen=True, slots=True)
class ThisMachine:
    """The target that describes this host and Python; ``note`` lists assumptions, or is ""."""

    target: Target
    note: str = ""


@functools.cache
def this_machine() -> ThisMachine:
    """The target of this host and this Python, or the nearest one known to wheelproof, with a note about it."""
    notes = []
    machine = _ALIASES.get(platform.machine().lower(), platform.machine().lower())
    library, version = platform.libc_ver()
    found = re.match(r"2\.(\d+)", version) if library == "glibc" else None
    if sys.platform != "linux" or machine not in OLDEST_GLIBC or found is None:
        machine = machine if machine in OLDEST_GLIBC else "x86_64"
        glibc = DEFAULT_GLIBC
        notes.append(
            f"this host is not glibc Linux on x86_64 or aarch64: checking for {machine} Linux (see --platform)"
        )
    else:
        glibc = (2, int(found[1]))
    if sys.implementation.name != "cpython":
        notes.append(f"this Python is {sys.implementation.name}: checking for CPython (see --python)")
    python = (sys.version_info[0], sys.version_info[1])
    threads = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return ThisMachine(Target(python, machine, glibc, threads, sys.version_info[2]), "; ".join(notes))


def parse_platform(text: str) -> tuple[tuple[str, tuple[int, int]], ...]:
    """The machines and glibc versions that ``--platform TEXT`` names: one, or two for "all". Raises UsageError."""
    name = text.strip().lower()
    if name == "all":
        return tuple((machine, DEFAULT_GLIBC) for machine in OLDEST_GLIBC)
    matched = _PLATFORM.fullmatch(name)
    machine = _ALIASES.get(matched["machine"], matched["machine"]) if matched else ""
    if matched is None or machine not in OLDEST_GLIBC:
        raise UsageError(f"the platform {text!r} is unknown", expected=f"one of {KNOWN_PLATFORMS}")
    policy = matched["policy"]
    if policy is None or policy == "linux":
        return ((machine, DEFAULT_GLIBC),)
    glibc = (2, int(matched["minor"])) if matched["minor"] else LEGACY_MANYLINUX.get(policy)
    if glibc is None or glibc < OLDEST_GLIBC[machine]:
        oldest = ".".join(map(str, OLDEST_GLIBC[machine]))
        raise UsageError(
            f"there are no {policy} wheels for {machine}", expected=f"manylinux of glibc {oldest} or newer"
        )
    return ((machine, glibc),)


def parse_python(text: str) -> tuple[tuple[int, int], int | None, bool]:
    """(major, minor), patch release or None, and whether it is free-threaded, of ``--python TEXT``.

    Raises UsageError.
    """
    matched = _PYTHON.fullmatch(text.strip().lower())
    python = (3, int(matched["minor"])) if matched else (0, 0)
    free_threaded = bool(matched and matched["threads"])
    if matched is None or python < (OLDEST_FREE_THREADED if free_threaded else OLDEST_PYTHON):
        raise UsageError(f"the Python {text!r} is unknown", expected=f"CPython {KNOWN_PYTHONS}")
    return python, int(matched["patch"]) if matched["patch"] else None, free_threaded


def parse_targets(
    platforms: Sequence[str] = (), pythons: Sequence[str] = (), *, systems: bool = False
) -> tuple[Target, ...]:
    """Every combination of ``--platform`` and ``--python``, each once; this host and Python as defaults.

    ``systems`` takes platforms of Windows and macOS, too. Raises UsageError, which lists the known names, for an
    unknown one.
    """
    here = this_machine().target
    machines = [target for text in platforms for target in _of_platform(text, here, systems=systems)] or [here]
    versions = [parse_python(text) for text in pythons] or [(here.python, here.patch, here.free_threaded)]
    targets = (
        replace(machine, python=python, free_threaded=free_threaded, patch=patch)
        for machine in machines
        for python, patch, free_threaded in versions
    )
    return tuple(dict.fromkeys(targets))


def other_system(platform_name: str, here: Target) -> Target | None:
    """The target of Windows or macOS that a platform names, with the Python of ``here``; None for any other name.

    Raises UsageError for a macOS that no tag names.
    """
    name = platform_name.strip().lower()
    if matched := _WINDOWS_PLATFORM.fullmatch(name):
        machine = _ALIASES.get(matched["machine"], matched["machine"])
        return replace(here, machine=machine, glibc=(0, 0), system=WINDOWS)
    if matched := _MACOS_PLATFORM.fullmatch(name):
        machine = _ALIASES.get(matched["machine"], matched["machine"])
        version = (int(matched["major"]), int(matched["minor"])) if matched["major"] else NEWEST_MACOS
        oldest = OLDEST_MACOS[machine]
        if version < oldest:
            known = f"macOS {oldest[0]}.{oldest[1]} or newer"
            raise UsageError(f"no Python versions are known for the platform {platform_name!r}", expected=known)
        return replace(here, machine=machine, glibc=(0, 0), system=MACOS, macos=version)
    return None


def _on_musl(platform_name: str, here: Target) -> Target | None:
    """The target with the C library musl that a platform tag of PEP 656 names; None for any other name."""
    matched = _MUSL_PLATFORM.fullmatch(platform_name.strip().lower())
    machine = _ALIASES.get(matched["machine"], matched["machine"]) if matched else ""
    if matched is None or machine not in OLDEST_GLIBC:
        return None
    return replace(here, machine=machine, glibc=(0, 0), musl=(1, int(matched["minor"])))


def _of_platform(text: str, here: Target, *, systems: bool) -> Iterator[Target]:
    other = _on_musl(text, here) or (other_system(text, here) if systems else None)
    if other is not None:
        yield other
        return
    try:
        pairs = parse_platform(text)
    except UsageError as error:
        if systems and error.expected:
            raise UsageError(error.what, expected=f"{error.expected}, {OTHER_PLATFORMS}") from None
        raise
    for machine, glibc in pairs:
        yield replace(here, machine=machine, glibc=glibc)


def _platforms(target: Target) -> Iterator[str]:
    """The platform tags that a target accepts, the preferred one first."""
    if target.system == WINDOWS:
        yield target.platform
    elif target.system == MACOS:
        yield from mac_platforms(target.macos, _MACOS_NAMES[target.machine])
    elif any(target.musl):
        major, newest = target.musl
        yield from (f"musllinux_{major}_{minor}_{target.machine}" for minor in range(newest, -1, -1))
        yield f"linux_{target.machine}"
    else:
        yield from _linux_platforms(target.machine, target.glibc)


def _linux_platforms(machine: str, glibc: tuple[int, int]) -> Iterator[str]:
    """The manylinux tags, and last the one without a glibc: the order of uv and of pip up to 26.2, not of pip 26.3."""
    for minor in range(glibc[1], OLDEST_GLIBC[machine][1] - 1, -1):
        yield f"manylinux_{glibc[0]}_{minor}_{machine}"
        if (glibc[0], minor) in _LEGACY_NAMES:
            yield f"{_LEGACY_NAMES[glibc[0], minor]}_{machine}"
    yield f"linux_{machine}"


@functools.cache
def _ranked_tags(target: Target) -> Mapping[Tag, int]:
    platforms = list(_platforms(target))
    ranks: dict[Tag, int] = {}
    for tag in cpython_tags(target.python, abis=[target.interpreter], platforms=platforms):
        ranks.setdefault(tag, len(ranks))
    for tag in compatible_tags(target.python, target.interpreter.removesuffix("t"), platforms=platforms):
        ranks.setdefault(tag, len(ranks))
    return MappingProxyType(ranks)
