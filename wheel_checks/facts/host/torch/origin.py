"""How a torch that does not fit came to be there: one explanation, the one that says most."""

import re
from collections.abc import Callable

from packaging.version import Version

from wheel_checks.data import load
from wheel_checks.facts.host.advice import is_old_jetson
from wheel_checks.facts.host.facts import HostFacts
from wheel_checks.facts.host.presence import may_have_gpu
from wheel_checks.facts.host.software import IndexSetting, TorchFiles
from wheel_checks.facts.host.torch.choice import asks_for_cpu, is_backend, machine_of, public
from wheel_checks.facts.host.torch.fit import (
    cuda_major,
    driver_behind,
    gpus_without_code,
    is_cpu_build,
    misfit,
    torch_files,
    torch_package,
)
from wheel_checks.facts.host.torch.timeline import replacement
from wheel_checks.model import Unavailable
from wheel_checks.parsing import version_or_none

_FIRST_ON_AARCH64 = Version("2.11")  # whose wheel for aarch64 on the package index is for CUDA
_TURING = 75  # the oldest GPU for which builds for CUDA 13 have code
_CUDA_INDEX = re.compile(r"/whl/(?:\w+/)*(cu\d{3})\b")


def origin(facts: HostFacts) -> str:
    """The entry of the catalogue that explains the installed torch (A01 to A05, A13, A14); "" when it fits, or when
    there is nothing to explain but what it is.
    """
    torch = torch_files(facts)
    if torch is None or not may_have_gpu(facts) or is_old_jetson(facts) or not misfit(facts):
        return ""
    return next((entry for entry, explains in _EXPLANATIONS if explains(facts, torch)), "")


def cpu_settings(facts: HostFacts) -> list[IndexSetting]:
    """The settings of installers that ask for builds for the CPU."""
    return [one for one in _settings(facts) if asks_for_cpu(one)]


def automatic_settings(facts: HostFacts) -> list[IndexSetting]:
    """The settings that let uv choose the build."""
    return [one for one in _settings(facts) if is_backend(one) and one.value == "auto"]


def outbid_index(facts: HostFacts, torch: TorchFiles) -> tuple[IndexSetting, str] | None:
    """An extra index for another build than the installed one, which came from elsewhere, and that build ("cu128").

    Only where the highest version of all indexes wins, as with pip.
    """
    package, settings = torch_package(facts), _settings(facts)
    if package is None or "+" in package.version or any(one.value == "first-index" for one in settings):
        return None
    for setting in settings:
        found = _CUDA_INDEX.search(setting.value)
        if found and setting.name.startswith("extra-index") and found[1] != torch.version.partition("+")[2]:
            return setting, found[1]
    return None


def newest_release(backend: str, machine: str) -> str:
    """The latest release that has a build on PyTorch's index ("cu128"), as far as the table knows; "" if none."""
    table = load("torch_releases")
    rows = [row for row in table["index_build"] if (row["backend"], row["machine"]) == (backend, machine)]
    return str(rows[-1].get("last") or table["release"][-1]["version"]) if rows else ""


def conda_cpu_builds(facts: HostFacts) -> list[tuple[str, str]]:
    """The packages of conda with torch in their names whose build strings say that they are for the CPU."""
    builds = {} if isinstance(facts.installed, Unavailable) else facts.installed.conda or {}
    return [(name, build) for name, build in builds.items() if "torch" in name and "cpu" in build]


def _settings(facts: HostFacts) -> tuple[IndexSetting, ...]:
    return () if isinstance(facts.indexes, Unavailable) else facts.indexes


def _of_conda(facts: HostFacts, torch: TorchFiles) -> bool:
    return is_cpu_build(torch) and bool(conda_cpu_builds(facts))


def _pinned(facts: HostFacts, _: TorchFiles) -> bool:
    before = replacement(facts)
    return before is not None and bool(before.pinned_by)


def _outbid(facts: HostFacts, torch: TorchFiles) -> bool:
    return outbid_index(facts, torch) is not None


def _behind(facts: HostFacts, torch: TorchFiles) -> bool:
    return driver_behind(facts, torch) is not None


def _chosen_by_driver(facts: HostFacts, torch: TorchFiles) -> bool:
    """Whether uv, asked to choose, took a build for CUDA 13 for a GPU that is older than any of those."""
    package = torch_package(facts)
    chosen = package is not None and package.installer == "uv" and bool(automatic_settings(facts))
    return chosen and cuda_major(torch.cuda) >= 13 and any(gpu.sm < _TURING for gpu in gpus_without_code(facts, torch))


def _asked_for(facts: HostFacts, torch: TorchFiles) -> bool:
    return is_cpu_build(torch) and bool(cpu_settings(facts))


def _replaced(facts: HostFacts, torch: TorchFiles) -> bool:
    return is_cpu_build(torch) and replacement(facts) is not None


def _of_package_index(facts: HostFacts, torch: TorchFiles) -> bool:
    """Whether it is the CPU wheel for aarch64 that the package index had: METADATA does not name the build."""
    package, version = torch_package(facts), version_or_none(public(torch.version))
    old = version is not None and version < _FIRST_ON_AARCH64
    hidden = package is not None and "+" not in package.version
    return is_cpu_build(torch) and hidden and old and machine_of(facts) == "aarch64"


def _is_cpu(_: HostFacts, torch: TorchFiles) -> bool:
    return is_cpu_build(torch)


# The first that holds is reported: who brought it, before what it is.
_EXPLANATIONS: tuple[tuple[str, Callable[[HostFacts, TorchFiles], bool]], ...] = (
    ("A14", _of_conda),
    ("A03", _pinned),
    ("A04", _outbid),
    ("A05", _behind),
    ("A13", _chosen_by_driver),
    ("A02", _asked_for),
    ("A03", _replaced),
    ("A01", _of_package_index),
    ("A02", _is_cpu),
)
