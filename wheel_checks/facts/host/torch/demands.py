"""What the installed distributions demand of one another, by their Requires-Dist: no advice may break it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from packaging.markers import UndefinedComparison, UndefinedEnvironmentName
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import InvalidVersion, Version

from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.software import Package
from wheel_checks.facts.host.torch.choice import COMPANIONS, Build, machine_of
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirement_or_none, version_or_none

# NVIDIA's packages that have the same paths for CUDA 12 and 13; the others have their own folders since CUDA 13.
SHARED_PATHS = {"nvidia-cudnn", "nvidia-cusparselt", "nvidia-nccl", "nvidia-nvshmem"}
_WITH_SUFFIX = re.compile(r"nvidia-.+-cu\d{2}")


@dataclass(frozen=True, slots=True)
class Demand:
    """A requirement of an installed distribution that holds on this host."""

    by: Package
    requirement: Requirement

    def __str__(self) -> str:
        return f"{self.by.name} {self.by.version} requires {self.requirement.name}{self.requirement.specifier}"

    def accepts(self, version: Version) -> bool:
        """Whether this version meets it. One that names an address says nothing about versions."""
        return bool(self.requirement.url) or self.requirement.specifier.contains(version, prereleases=True)


def demands_on(facts: HostFacts, name: str) -> tuple[Demand, ...]:
    """What installed distributions require of ``name``, without extras; the companions of torch, which go along with
    it, demand nothing.
    """
    return tuple(
        demand
        for demand in _demands(facts, name)
        if demand.by.name not in COMPANIONS and not _is_of_an_extra(demand.requirement)
    )


def users_of(facts: HostFacts, name: str) -> tuple[Package, ...]:
    """The installed distributions that require ``name``, also by an extra: whether that was requested is unknown."""
    return tuple(dict.fromkeys(demand.by for demand in _demands(facts, name)))


def refused_by(facts: HostFacts, build: Build) -> Demand | None:
    """The first demand on torch that a build does not meet; None when all are met."""
    version = version_or_none(build.full_version)
    return next((one for one in demands_on(facts, "torch") if version is None or not one.accepts(version)), None)


def overwritten_by(facts: HostFacts, build: Build) -> tuple[Package, ...]:
    """The libraries for another CUDA that something else than torch requires, and whose files those of a build replace.

    JAX for CUDA 12 requires nvidia-cudnn-cu12; a torch for CUDA 13 brings nvidia-cudnn-cu13, with the same paths.
    """
    if isinstance(facts.installed, Unavailable):
        return ()
    own = f"cu{Version(build.cuda).major}"
    return tuple(
        package
        for package in facts.installed.packages
        if shares_paths(package.name)
        and not package.name.endswith(own)
        and any(user.name not in {"torch", *COMPANIONS} for user in users_of(facts, package.name))
    )


def shares_paths(name: str) -> bool:
    """Whether it is a library of NVIDIA's that has the same paths for every CUDA, such as nvidia-cudnn-cu12."""
    return _WITH_SUFFIX.fullmatch(name) is not None and family_of(name) in SHARED_PATHS


def family_of(name: str) -> str:
    """The name without its CUDA: nvidia-cudnn of nvidia-cudnn-cu13."""
    return re.sub(r"-cu\d{2}$", "", name)


def applies(requirement: Requirement, markers: dict[str, str]) -> bool:
    """Whether it is meant here. One after an extra is: whether the extra was requested is not recorded."""
    if requirement.marker is None or _is_of_an_extra(requirement):
        return True
    try:
        return requirement.marker.evaluate(markers)
    except (InvalidVersion, UndefinedComparison, UndefinedEnvironmentName):
        return True


def markers_of(facts: HostFacts) -> dict[str, str]:
    """The variables of markers on this host, as far as they are known; torch's requirements ask for no others."""
    version = "" if isinstance(facts.interpreter, Unavailable) else facts.interpreter.version
    return {
        "platform_system": "Linux",
        "sys_platform": "linux",
        "os_name": "posix",
        "platform_machine": machine_of(facts),
        "python_version": ".".join(version.split(".")[:2]) or "3.12",
        "python_full_version": version or "3.12.0",
        "extra": "",
    }


def _demands(facts: HostFacts, name: str) -> Iterator[Demand]:
    if isinstance(facts.installed, Unavailable):
        return
    markers = markers_of(facts)
    for package in facts.installed.packages:
        for text in package.requires:
            found = requirement_or_none(text)
            if found and canonicalize_name(found.name) == name != package.name and applies(found, markers):
                yield Demand(package, found)


def _is_of_an_extra(requirement: Requirement) -> bool:
    return requirement.marker is not None and "extra" in str(requirement.marker)
