"""The packages named in the project's tables, experiments and tests, for measurements of noise."""

from __future__ import annotations

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from wheel_checks.errors import WheelproofError
from wheel_checks.facts.accelerator.signals import active_requirements
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.facts import WheelFacts
from wheel_checks.facts.wheel.reading import Request, read_wheel
from wheel_checks.model import Unavailable
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import choose, release_wheels
from wheel_checks.targets.target import DEFAULT_GLIBC, Target

ROOT = Path(__file__).parent.parent
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")


def packages() -> list[str]:
    """The normalised names, sorted."""
    return sorted(
        {canonicalize_name(name) for name in (*_of_results(), *_of_readiness(), *_of_constraints(), *_of_tables())}
    )


def _of_results() -> Iterator[str]:
    """Packages of ci/closures.json and ci/abi_pairs.json, and those whose libraries they load."""
    for name in ("closures", "abi_pairs"):
        yield from _named(json.loads((ROOT / "ci" / f"{name}.json").read_text(encoding="utf-8")))


def _named(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            if key == "from_wheels":
                yield from (owner.partition(" ")[0] for owner in inner)
            elif key in ("package", "other", "torch", "with") and isinstance(inner, str) and "==" in inner:
                yield re.split(r"[\[=]", inner)[0]
            else:
                yield from _named(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _named(inner)


def _of_readiness() -> Iterator[str]:
    """The first column of docs/readiness.md."""
    for line in (ROOT / "docs" / "readiness.md").read_text(encoding="utf-8").splitlines():
        cell = line.removeprefix("| ").partition(" |")[0]
        if line.startswith("| ") and cell != "package" and _NAME.fullmatch(cell):
            yield cell


def _of_constraints() -> Iterator[str]:
    """The development environment, of ci/constraints.txt."""
    for path in (ROOT / "ci").glob("constraints*.txt"):
        yield from re.findall(r"^([A-Za-z0-9._-]+)==", path.read_text(encoding="utf-8"), re.MULTILINE)


def _of_tables() -> Iterator[str]:
    """Packages that are compiled against torch, and the large stacks that the issues are about."""
    extensions = tomllib.loads((ROOT / "wheel_checks/data/torch_extensions.toml").read_text(encoding="utf-8"))
    yield from (row["name"] for row in extensions["extension"])
    yield from tomllib.loads((ROOT / "ci/oracle/packages.toml").read_text(encoding="utf-8"))["names"]
    yield from ("setuptools", "coverage", "pytest-cov", "wheel", "jax", "transformers", "accelerate", "peft")


def newest_of_any_machine(requirements: Sequence[str]) -> Iterator[WheelFacts]:
    """A wheel of the latest release that fits each of these requirements, for any machine and Python."""
    with HttpClient(None) as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        for name in requirements:
            try:
                requirement = Requirement(name)
                wheels = release_wheels(requirement, index.files(requirement.name).files)
                if not wheels:
                    print(f"{name}: no wheel", file=sys.stderr)
                    continue
                source = client.open(wheels[-1].url)
                try:
                    yield read_wheel(source, Request(wheels[-1].file_name, listing=wheels[-1]))
                finally:
                    source.close()
            except WheelproofError as error:
                print(f"{name}: {error}", file=sys.stderr)


def newest_wheels(
    machines: Sequence[str], depth: Depth = Depth.QUICK, jobs: int = 6, largest: int = 0
) -> Iterator[WheelFacts]:
    """The latest wheel of each package for each machine and Python 3.12, and of all that these require.

    Of a wheel of more than ``largest`` bytes, unless that is 0, depth quick is read.

    Packages without such a wheel are omitted; a wheel for all machines comes once.
    """
    targets = [Target((3, 12), machine, DEFAULT_GLIBC) for machine in machines]
    seen, files = set(packages()), set[str]()
    with HttpClient(None) as client, ThreadPoolExecutor(jobs) as pool:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))

        def read(name: str) -> list[WheelFacts]:
            found = []
            try:
                listed = index.files(name).files
                for target in targets:
                    chosen = choose(Requirement(name), listed, target).chosen
                    if chosen is None or chosen.file_name in files:
                        continue
                    files.add(chosen.file_name)
                    source = client.open(chosen.url)
                    try:
                        how_deep = Depth.QUICK if 0 < largest < (chosen.size or 0) else depth
                        request = Request(chosen.file_name, listing=chosen, target=target, depth=how_deep)
                        found.append(read_wheel(source, request))
                    finally:
                        source.close()
            except WheelproofError as error:
                print(f"{name}: {error}", file=sys.stderr)
            return found

        names = sorted(seen)
        while names:
            required: set[str] = set()
            for facts in (one for group in pool.map(read, names) for one in group):
                metadata = facts.metadata
                if not isinstance(metadata, Unavailable) and facts.target:
                    active = active_requirements(metadata.requirements, facts.target.markers())
                    required |= {canonicalize_name(requirement.name) for requirement in active}
                yield facts
            names = sorted(required - seen)
            seen |= required
