"""The packages of the environment that an install would change, real or described."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import distributions
from pathlib import Path

from packaging.utils import canonicalize_name
from packaging.version import Version

from wheel_checks.errors import NotFoundError
from wheel_checks.facts.pins.import_order import Copy
from wheel_checks.facts.pins.outcome import extras_of
from wheel_checks.facts.stack.facts import LinkedPackage
from wheel_checks.model import Unavailable
from wheel_checks.parsing import requirements_in, version_or_none
from wheel_checks.sources.environment import Environment, find_environment
from wheel_checks.targets.target import DEFAULT_GLIBC, OLDEST_GLIBC, Target

TORCH = "torch"
WATCHED = (TORCH, "torchvision", "torchaudio", "torchcodec", "torchao", "triton", "pytorch-triton")
"""torch and its companions, which an install must not change unnoticed."""


def read_packages(environment: Environment) -> dict[str, LinkedPackage]:
    """Every distribution by its normalised name, with its requirements; the first in import order wins.

    METADATA is read and nothing is run. Distributions without readable name or version are ignored, as installers do.
    """
    found: dict[str, LinkedPackage] = {}
    for distribution in distributions(path=[entry.path for entry in environment.entries]):
        name, version = ((distribution.metadata.get_all(key) or [""])[0] for key in ("Name", "Version"))
        normalised = str(canonicalize_name(name))
        if normalised and normalised not in found and version_or_none(version):
            found[normalised] = LinkedPackage(normalised, version, tuple(requirements_in(distribution.requires or ())))
    return found


def installed_version(name: str, python: str, variables: Mapping[str, str]) -> tuple[str, Version]:
    """The normalised name and the version of a package in the environment at ``python`` (the active one for "").

    Raises NotFoundError when there is no environment or it lacks the package.
    """
    environment = find_environment(python, variables=variables)
    normalised = str(canonicalize_name(name))
    package = read_packages(environment).get(normalised)
    if package is None:
        raise NotFoundError(
            f"{normalised} is not installed in {environment.path}", hint="name it: --installed 2.7.0+cu128"
        )
    return normalised, Version(package.version)


def describe(folder: Path, packages: Iterable[Copy]) -> None:
    """Write into ``folder`` the metadata of packages, so that an installer takes them as installed.

    They have no files, only metadata.
    """
    for copy in packages:
        record = folder / f"{copy.name.replace('-', '_')}-{copy.version}.dist-info"
        record.mkdir(parents=True)
        required = () if isinstance(copy.requirements, Unavailable) else copy.requirements
        lines = ["Metadata-Version: 2.1", f"Name: {copy.name}", f"Version: {copy.version}"]
        lines += [f"Provides-Extra: {extra}" for extra in extras_of(required)]
        lines += [f"Requires-Dist: {requirement}" for requirement in required]
        files = {"METADATA": "".join(f"{line}\n" for line in lines), "INSTALLER": "wheelproof\n"}
        rows = "".join(f"{record.name}/{file},,\n" for file in (*files, "RECORD"))
        for file, text in {**files, "RECORD": rows}.items():
            (record / file).write_text(text, encoding="utf-8")


def target_of(environment: Environment) -> Target:
    """The target that markers and wheels of an environment are judged for.

    Raises NotFoundError when nothing says its Python, or when it is for a machine that wheelproof does not know.
    """
    if environment.python is None or environment.machine not in OLDEST_GLIBC:
        machine = environment.machine or "unknown"
        raise NotFoundError(
            f"{environment.path} is for an unknown Python or machine ({machine})",
            expected=f"CPython on {' or '.join(OLDEST_GLIBC)}",
            hint="describe it: --installed torch==VERSION --platform aarch64 --python 3.12",
        )
    return Target(environment.python, environment.machine, DEFAULT_GLIBC, environment.free_threaded, environment.patch)
