"""Writes the [[release]] rows of wheel_checks/data/torch_releases.toml from the wheels themselves.

usage: python ci/update_torch_releases.py [OLDEST]     (default: 2.2)

Reads the lists of torch, torchvision and torchaudio on the configured index, and METADATA of one wheel per release of
the last two; keeps the [[index_build]] rows, which nothing on that index can say, as they are.
"""

from __future__ import annotations

import datetime as dt
import os
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from packaging.specifiers import SpecifierSet
from packaging.version import Version

from wheel_checks.facts.wheel.reading import Request, read_wheel
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.core_metadata import CoreMetadata
from wheel_checks.formats.wheel.wheel_name import parse_wheel_name
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "torch_releases.toml"
MARK = "# [[release]]"
COMPANIONS = ("torchvision", "torchaudio")
SINCE = {"torchvision": Version("0.17"), "torchaudio": Version("2.2")}  # the releases next to torch 2.2
# The newest torchaudio names no torch. It came with torch 2.11, and no other came after it.
UNPINNED = {("torchaudio", Version("2.11.0")): SpecifierSet(">=2.11")}
POLICIES = {"manylinux1": (2, 5), "manylinux2014": (2, 17)}


def main() -> int:
    """Read, rewrite the rows after the mark, and print how many there are."""
    oldest = Version(sys.argv[1] if len(sys.argv) > 1 else "2.2")
    with HttpClient() as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        torch = _by_version(index.files("torch").files, oldest)
        accepts = {
            name: dict(_accepted(client, name, _by_version(index.files(name).files, SINCE[name])))
            for name in COMPANIONS
        }
    kept = TABLE.read_text(encoding="utf-8").partition(MARK)[0].rstrip()
    lines = [
        kept,
        "",
        f"{MARK}: torch on the package index: the torchvision and torchaudio that fit it, and for each machine the",
        "# Pythons that have wheels (as in their ABI tags) and the oldest glibc that these promise to run on.",
        f"# Read from the index and the wheels by ci/update_torch_releases.py on {dt.datetime.now(dt.UTC).date()}.",
    ]
    for version, files in sorted(torch.items()):
        lines += ["", "[[release]]", f'version = "{version}"']
        lines += [f'{name} = "{_companion(version, accepts[name])}"' for name in COMPANIONS]
        lines += [line for machine in ("x86_64", "aarch64") for line in _machine(machine, files)]
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{len(torch)} rows")
    return 0


def _companion(torch: Version, accepts: Mapping[Version, SpecifierSet]) -> str:
    """The specifier of the releases that fit this torch: one release, or all from the first that names no single
    torch; "" when none does.
    """
    fitting = [release for release, wanted in accepts.items() if torch in wanted]
    lasting = [release for release in fitting if "==" not in str(accepts[release])]
    if lasting:
        return f">={min(lasting)}"
    return f"=={max(fitting)}" if fitting else ""


def _by_version(files: tuple[IndexFile, ...], oldest: Version) -> dict[Version, list[IndexFile]]:
    """The wheels for Linux, without local versions, by release."""
    found: dict[Version, list[IndexFile]] = {}
    for file in files:
        if file.is_wheel and "manylinux" in file.file_name and not file.yanked:
            version = parse_wheel_name(file.file_name).parsed_version
            if version >= oldest and not version.local:
                found.setdefault(version, []).append(file)
    return found


def _accepted(
    client: HttpClient, name: str, releases: Mapping[Version, list[IndexFile]]
) -> Iterator[tuple[Version, SpecifierSet]]:
    """Each release, and the torch that it accepts. Raises KeyError if it names none, unless that is known."""
    for version, files in releases.items():
        file = next(file for file in files if "x86_64" in file.file_name)
        metadata = read_wheel(client.open(file.url, size=file.size), Request(file.file_name)).metadata
        requirements = metadata.requirements if isinstance(metadata, CoreMetadata) else ()
        torch = [requirement.specifier for requirement in requirements if requirement.name == "torch"]
        yield version, torch[0] if torch else UNPINNED[name, version]


def _machine(machine: str, files: list[IndexFile]) -> Iterator[str]:
    names = [parse_wheel_name(file.file_name) for file in files if machine in file.file_name]
    tags = [tag for name in names for tag in name.tags]
    abis = sorted({tag.abi for tag in tags}, key=lambda abi: (len(abi.rstrip("t")), abi))
    policies = [tag.platform.removesuffix(f"_{machine}") for tag in tags]
    glibc = max(POLICIES.get(policy) or tuple(map(int, policy.split("_")[1:])) for policy in policies)
    pythons = ", ".join(f'"{abi}"' for abi in abis)
    yield f'{machine} = {{ glibc = "{glibc[0]}.{glibc[1]}", pythons = [{pythons}] }}'


if __name__ == "__main__":
    sys.exit(main())
