"""The pinned environments fit ``pyproject.toml``, and name no place to take packages from."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUN = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
GROUPS = PROJECT["dependency-groups"]
PINS = {"constraints-run.txt": RUN, "constraints.txt": [*RUN, *GROUPS["test"], *GROUPS["lint"]]}
PINS["constraints-mutation.txt"] = [*RUN, *GROUPS["mutation"]]


def blocks_of(name: str) -> dict[str, tuple[str, str]]:
    """(version, hashes and markers) of each pinned package."""
    text = (ROOT / "ci" / name).read_text()
    blocks = re.findall(r"^([a-z0-9-]+)==(\S+)(.*(?:\n    .*)*)", text, re.MULTILINE)
    return {package: (version, rest) for package, version, rest in blocks}


@pytest.mark.parametrize("name", PINS)
def test_every_requirement_is_pinned_to_a_version_that_it_allows(name: str) -> None:
    pinned = blocks_of(name)
    for requirement in map(Requirement, PINS[name]):
        version, _rest = pinned[requirement.name]
        assert requirement.specifier.contains(version), f"{requirement} is pinned to {version}: update the constraints"


@pytest.mark.parametrize("name", PINS)
def test_every_pin_has_a_hash_and_no_line_names_an_index_or_a_path(name: str) -> None:
    for package, (_version, rest) in blocks_of(name).items():
        assert re.search(r"--hash=sha256:[0-9a-f]{64}", rest), package
    lines = (ROOT / "ci" / name).read_text().splitlines()
    allowed = re.compile(r"# Made by ci/|[a-z0-9-]+==\S+( ; [^/]+)? \\$|    --hash=sha256:[0-9a-f]{64}( \\)?$")
    assert [line for line in lines if not allowed.match(line)] == []


def test_all_files_agree_on_every_version() -> None:
    everything = {name: version for name, (version, _rest) in blocks_of("constraints.txt").items()}
    for file in PINS:
        pinned = {name: version for name, (version, _rest) in blocks_of(file).items()}
        both = pinned.keys() & everything.keys()
        assert {name: pinned[name] for name in both} == {name: everything[name] for name in both}
    assert blocks_of("constraints-run.txt").keys() <= everything.keys()
