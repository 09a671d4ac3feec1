"""The least glibc and NVIDIA driver that a stack needs; ``stack_needs(facts).sentences`` are for people."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from wheel_checks.data import load
from wheel_checks.facts.accelerator.signals import CUDA
from wheel_checks.facts.gpu.drivers import first_branch_for, oldest_driver
from wheel_checks.facts.gpu.targets import Product
from wheel_checks.facts.stack.facts import StackFacts, StackPackage
from wheel_checks.parsing import specifiers_or_none
from wheel_checks.phrases import joined
from wheel_checks.targets.target import LEGACY_MANYLINUX, Target

_PLATFORM = re.compile(r"manylinux_(\d{1,3})_(\d{1,3})_|(manylinux(?:1|2010|2014))_", re.ASCII)

Glibc = tuple[int, int]


@dataclass(frozen=True, slots=True)
class GlibcNeed:
    """The oldest sufficient glibc, the package that needs it ("torch 2.11.0"), and the evidence: "platform tag" or
    "symbol versions". ``distributions`` are the oldest releases of Linux distributions that have it.
    """

    version: Glibc
    package: str
    source: str
    distributions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class DriverNeed:
    """The oldest driver that runs the stack ("580"), and what needs it: "torch 2.11.0: CUDA 13.0", or a GPU: "B200"."""

    version: str
    because: str


@dataclass(frozen=True, slots=True)
class StackNeeds:
    """The needs of a stack; None if nothing in it shows one. ``assumed`` is the glibc for which it was resolved.

    ``python`` is the oldest sufficient patch release ("3.13.14"), "" if any suffices or one was named.
    """

    glibc: GlibcNeed | None
    driver: DriverNeed | None
    assumed: Glibc
    python: str = ""

    @property
    def sentences(self) -> tuple[str, ...]:
        """Such as "needs glibc 2.34 (vllm 0.19.0): RHEL 9, Ubuntu 22.04, Debian 12; assumed: 2.39"."""
        found = []
        if self.glibc:
            where = f": {', '.join(self.glibc.distributions)}" if self.glibc.distributions else ""
            found.append(
                f"needs glibc {_text(self.glibc.version)} ({self.glibc.package}){where}; assumed: {_text(self.assumed)}"
            )
        if self.driver:
            found.append(f"needs driver {self.driver.version} or later ({self.driver.because})")
        return tuple(found)

    def condition(self, *, with_driver: bool) -> str:
        """The requirements on the system that were not named: "driver 580 or newer and glibc 2.28 or newer"."""
        driver = f"driver {self.driver.version} or newer" if self.driver and with_driver else ""
        glibc = f"glibc {_text(self.glibc.version)} or newer" if self.glibc else ""
        return joined([need for need in (driver, glibc, self.python and f"Python {self.python} or newer") if need])


def stack_needs(
    stack: StackFacts,
    symbol_versions: Mapping[str, Glibc] | None = None,
    pythons: Iterable[str] = (),
    gpus: Iterable[Product] = (),
) -> StackNeeds:
    """The least glibc, driver and patch release of Python of a stack on ``gpus``.

    ``pythons`` are Requires-Pythons of its wheels.

    glibc comes from the platform tags of the wheels (PEP 600: a wheel promises the oldest of its tags), or from
    ``symbol_versions``, the latest GLIBC_ version that the libraries of a file need, by its file name, if these were
    read and are newer. The driver comes from the major CUDA versions (``drivers.toml``).
    """
    found = [need for need in (_glibc_of(package, symbol_versions or {}) for package in stack.packages) if need]
    drivers = [need for need in map(_driver_of, stack.packages) if need]
    if drivers:
        drivers += [DriverNeed(str(first), gpu.name) for gpu in gpus if (first := first_branch_for(gpu.sm))]
    return StackNeeds(
        max(found, key=lambda need: need.version, default=None),
        max(drivers, key=lambda need: tuple(map(int, need.version.split("."))), default=None),
        stack.target.glibc,
        _oldest_patch(stack.target, pythons),
    )


def _oldest_patch(target: Target, requires_pythons: Iterable[str]) -> str:
    """The oldest patch release that all admit; "" if it is the first one, or none, or if the user named one."""
    admitted = [specifiers for text in requires_pythons if (specifiers := specifiers_or_none(text))]
    versions = (replace(target, patch=patch).python_full_version for patch in range(40))
    fitting = (v for v in versions if all(one.contains(v, prereleases=True) for one in admitted))
    oldest = "" if target.patch is not None else next(fitting, "")
    return "" if oldest.endswith(".0") else oldest


def distributions_with(glibc: Glibc) -> tuple[str, ...]:
    """The oldest release of each distribution that has this glibc or a newer one, by the dated table."""
    first: dict[str, str] = {}
    for row in load("distributions")["distribution"]:
        if _parsed(row["glibc"]) >= glibc:
            first.setdefault(row["name"].rpartition(" ")[0], row["name"])
    return tuple(first.values())


def glibc_of_tags(file_name: str) -> Glibc | None:
    """The oldest glibc that a wheel's platform tags promise to suffice; None if it is not for manylinux."""
    found = [
        LEGACY_MANYLINUX[legacy] if legacy else (int(major), int(minor))
        for major, minor, legacy in _PLATFORM.findall(file_name)
    ]
    return min(found, default=None)


def _glibc_of(package: StackPackage, symbol_versions: Mapping[str, Glibc]) -> GlibcNeed | None:
    tagged, read = glibc_of_tags(package.file_name), symbol_versions.get(package.file_name)
    versions = [
        (version, source) for version, source in ((tagged, "platform tag"), (read, "symbol versions")) if version
    ]
    if not versions:
        return None
    version, source = max(versions, key=lambda item: item[0])
    return GlibcNeed(version, package.label, source, distributions_with(version))


def _driver_of(package: StackPackage) -> DriverNeed | None:
    facts = package.known_accelerator
    if facts is None or facts.accelerator != CUDA or not facts.version:
        return None
    oldest = oldest_driver(int(facts.version.partition(".")[0]))
    return DriverNeed(oldest, f"{package.label}: CUDA {facts.version}") if oldest else None


def _parsed(text: str) -> Glibc:
    major, minor = text.split(".")[:2]
    return int(major), int(minor)


def _text(version: Glibc) -> str:
    return f"{version[0]}.{version[1]}"
