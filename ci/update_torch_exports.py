"""Writes wheel_checks/data/torch_exports.bin: the hashes of the exports of torch's own libraries, by release.

usage: python ci/update_torch_exports.py [--oldest 2.2] [--jobs 4] [--check COUNT]

Reads .gnu.hash of each library by ranges: about 4 MB for the first wheel of a release and machine, all libraries, and
1.5 MB for each other Python, only libtorch_python.so. All wheels take 15 minutes and 500 MB. --check reads COUNT
releases, spread over the table, and compares them with it; it writes nothing.
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import re
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from packaging.version import Version

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # a script finds only modules in its own folder

from ci.exported_hashes import read_exported_hashes
from ci.hash_table_writer import Entry, write
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.members import read_members
from wheel_checks.facts.archive.reading import read_archive
from wheel_checks.facts.links.torch_exports import of_python, stored_sets
from wheel_checks.formats.index.page import IndexFile
from wheel_checks.formats.wheel.wheel_name import WheelName, parse_wheel_name
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex

TABLE = Path(__file__).parent.parent / "wheel_checks" / "data" / "torch_exports.bin"
MACHINES = ("x86_64", "aarch64")
OWN_LIBRARY = re.compile(r"torch/lib/lib(?:torch|c10|shm|caffe2)(?:_[a-z0-9_]+)?\.so")
OF_PYTHON = "torch/lib/libtorch_python.so"
VERSION_FILE = "torch/version.py"
LARGEST_VERSION_FILE = 64 * 1024
STREAMED = 700_000_000  # compressed bytes of a library that is streamed where its ends do not say
FIRST_CHOICE = "cp312"  # the Python of which all libraries are read; every release from 2.2 on has wheels for it


@dataclass(frozen=True)
class Build:
    """One release on one machine: its full version, exports of the libraries."""

    version: str
    machine: str
    sets: Mapping[str, frozenset[int]]


def main() -> int:
    """Read, and write the table or compare with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oldest", type=Version, default=Version("2.2"))
    parser.add_argument("--jobs", type=int, default=4)
    parser.add_argument("--check", type=int, metavar="COUNT")
    options = parser.parse_args()
    with HttpClient() as client, ThreadPoolExecutor(options.jobs) as pool:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        releases = _releases(index.files("torch").files, options.oldest)
        if options.check:
            releases = releases[:: max(1, len(releases) // options.check)][: options.check]
        builds = list(pool.map(lambda files: _read(client, files), releases))
    if options.check:
        return _compare(builds)
    TABLE.write_bytes(_table(builds))
    print(f"{len(builds)} builds, {TABLE.stat().st_size:,} bytes")
    return 0


def _releases(files: Sequence[IndexFile], oldest: Version) -> list[list[tuple[WheelName, IndexFile]]]:
    """The wheels of each release and machine, one per Python, FIRST_CHOICE first; the oldest release first."""
    found: dict[tuple[Version, str], dict[str, tuple[WheelName, IndexFile]]] = defaultdict(dict)
    for file in files:
        if not file.is_wheel or file.yanked or "manylinux" not in file.file_name:
            continue
        name = parse_wheel_name(file.file_name)
        version = name.parsed_version
        machine = next((machine for machine in MACHINES if machine in file.file_name), "")
        if version < oldest or version.local or not machine:
            continue
        wheels, abi = found[version, machine], _abi(name)
        if abi not in wheels or name.build_number > wheels[abi][0].build_number:  # a later build goes before
            wheels[abi] = (name, file)
    return [
        sorted(wheels.values(), key=lambda wheel: (_abi(wheel[0]) != FIRST_CHOICE, _abi(wheel[0])))
        for _, wheels in sorted(found.items())
    ]


def _abi(name: WheelName) -> str:
    return next(iter(name.tags)).abi


def _read(client: HttpClient, wheels: Sequence[tuple[WheelName, IndexFile]]) -> Build:
    """The exports of one release on one machine."""
    sets: dict[str, frozenset[int]] = {}
    of_pythons: dict[str, frozenset[int]] = {}
    version = ""
    for number, (name, file) in enumerate(wheels):
        source = client.open(file.url, size=file.size)
        archive = read_archive(source)
        if not number:
            version = _full_version(source, archive)
        for member in archive.members:
            if member.name == OF_PYTHON:
                of_pythons[_abi(name)] = _exports(source, archive, member.name)
            elif not number and OWN_LIBRARY.fullmatch(member.name):
                sets[PurePosixPath(member.name).name] = _exports(source, archive, member.name)
    library = PurePosixPath(OF_PYTHON).name
    sets[library] = frozenset.intersection(*of_pythons.values())
    sets |= {of_python(library, abi): hashes - sets[library] for abi, hashes in of_pythons.items()}
    machine = next(machine for machine in MACHINES if machine in wheels[0][1].file_name)
    print(version, machine, {key: len(value) for key, value in sets.items()}, file=sys.stderr, flush=True)
    return Build(version, machine, sets)


def _exports(source: ByteSource, archive: Archive, name: str) -> frozenset[int]:
    member = next(member for member in archive.members if member.name == name)
    hashes = read_exported_hashes(source, archive, member, stream=STREAMED)
    if isinstance(hashes, Unavailable):
        raise SystemExit(f"{source.location}: {hashes.reason}; the table is unchanged")
    return hashes


def _full_version(source: ByteSource, archive: Archive) -> str:
    """The version in torch/version.py, with the local part that the file's name lacks."""
    content = read_members(source, archive, {VERSION_FILE: LARGEST_VERSION_FILE}).parse(VERSION_FILE, bytes.decode)
    match = None if isinstance(content, Unavailable) else re.search(r"__version__ = '([^']+)'", content)
    if match is None:
        raise SystemExit(f"{source.location}: {VERSION_FILE} names no version; the table is unchanged")
    return match[1]


def _table(builds: Sequence[Build]) -> bytes:
    """The latest release of each machine in full, each older one as its difference from the next."""
    entries: list[Entry] = []
    for machine in MACHINES:
        base = -1
        for build in [build for build in reversed(builds) if build.machine == machine]:
            about = {"version": build.version, "machine": machine}
            entries.append(Entry(about, build.sets, base))
            base = len(entries) - 1
    return write({"date": str(dt.datetime.now(dt.UTC).date())}, entries)


def _compare(builds: Sequence[Build]) -> int:
    """0 if the table has the same values for each build."""
    different = 0
    for build in builds:
        same = stored_sets(build.version, build.machine) == (build.version, build.sets)
        different += not same
        print(f"{build.version} {build.machine}: {'the same' if same else 'DIFFERENT'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
