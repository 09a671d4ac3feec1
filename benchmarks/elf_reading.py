"""Measure remote reads of the linked libraries of a requirement's whole closure.

usage: python benchmarks/elf_reading.py [REQUIREMENT] [PLATFORM] [PYTHON] [STREAM]
       (default: torch==2.11.0 aarch64 3.12 0)

Resolves the requirement with uv, then reads, without a cache, the central directory of each wheel and the linking of
each library. STREAM is the number of compressed megabytes up to which a member may be streamed. Prints per wheel and in
all the bytes, requests and seconds, how the files were read, unknown ones, and the places of their dynamic sections.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from packaging.requirements import Requirement

from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.elf.reading import read_member_elfs
from wheel_checks.formats.elf.file import ElfFacts, Missing
from wheel_checks.formats.elf.segments import PT_DYNAMIC
from wheel_checks.formats.zip.directory import Member, read_directory
from wheel_checks.formats.zip.end_record import find_end_record
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource, Cost
from wheel_checks.sources.client import HttpClient
from wheel_checks.sources.installers.config import configured_indexes
from wheel_checks.sources.simple_index import SimpleIndex
from wheel_checks.targets.selection import choose
from wheel_checks.targets.target import Target, parse_targets

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class WheelResult:
    """The reads of one wheel. ``directory`` is the cost of its central directory, ``cost`` of all."""

    name: str
    elfs: list[MemberElf]
    directory: Cost
    cost: Cost


def resolve(requirement: str, target: Target) -> list[Requirement]:
    """The exact pins of the closure for the target."""
    command = [sys.executable, "-m", "uv", "pip", "compile", "-", "--no-header", "--no-annotate", "--quiet"]
    command += ["--python-platform", f"{target.machine}-manylinux_2_28"]
    command += ["--python-version", ".".join(map(str, target.python))]
    output = subprocess.run(command, input=requirement, capture_output=True, text=True, check=True).stdout
    return [Requirement(line) for line in output.splitlines() if line]


def looks_like_elf(member: Member) -> bool:
    """By the name of a shared library; programs that wheels bring along are not linked to by anything."""
    name = member.name.rpartition("/")[2]
    return name.endswith(".so") or ".so." in name


def read_archive(source: ByteSource) -> Archive:
    """The central directory."""
    size, tail = source.read_tail(64 * 1024)
    end = find_end_record(tail, size)
    members, _ = read_directory(source.read(end.directory_offset, end.directory_size), end)
    return Archive(end, members, ())


def read_one(
    requirement: Requirement, client: HttpClient, index: SimpleIndex, target: Target, stream: int
) -> WheelResult:
    """Choose the wheel and read its ELF files."""
    chosen = choose(requirement, index.files(requirement.name).files, target).chosen
    if chosen is None:
        sys.exit(f"no wheel for {requirement}")
    source = client.open(chosen.url, expected_hash=f"sha256={chosen.hashes['sha256']}", size=chosen.size)
    archive = read_archive(source)
    directory = source.cost
    elfs = read_member_elfs(source, archive, [m for m in archive.members if looks_like_elf(m)], stream=stream)
    return WheelResult(chosen.file_name, elfs, directory, source.cost)


def place_of_dynamic(elf: MemberElf) -> str:
    """The place of the dynamic section, as a distance from the start and from the end."""
    if not isinstance(elf.facts, ElfFacts) or isinstance(elf.facts.segments, Missing):
        return "unknown"
    segments = elf.facts.segments.of_type(PT_DYNAMIC)
    if not segments:
        return "none"
    offset = segments[0].offset
    return f"{offset / MEGABYTE:.2f} MB from the start, {(elf.member.size - offset) / MEGABYTE:.2f} from the end"


def report(result: WheelResult) -> None:
    """One line for the wheel, and one for each ELF file that is big or not known in full."""
    modes = Counter(str(elf.mode) for elf in result.elfs if isinstance(elf.facts, ElfFacts))
    print(
        f"{result.name}: {len(result.elfs)} files {dict(modes)}, "
        f"{result.cost.bytes_read - result.directory.bytes_read:,} bytes"
    )
    for elf in result.elfs:
        if not isinstance(elf.facts, ElfFacts):
            print(f"    {elf.member.name}: {elf.facts.reason}"[:160])
        elif not elf.complete or elf.bytes_read > 100_000:
            missing = f"missing {', '.join(sorted(elf.facts.missing))}" if elf.facts.missing else "complete"
            name = elf.member.name.rpartition("/")[2]
            sizes = f"{elf.bytes_read:,} of {elf.member.compressed_size:,} B"
            print(f"    {name}: {elf.mode}, {sizes}, {missing}; .dynamic {place_of_dynamic(elf)}")
            if not elf.complete:
                print(f"        possible names: {elf.possible_names}"[:400])


def main() -> None:
    """Read the closure and print the tables."""
    defaults = ["torch==2.11.0", "aarch64", "3.12", "0"]
    requirement, platform, python, stream = sys.argv[1:5] + defaults[len(sys.argv) - 1 :]
    (target,) = parse_targets([platform], [python])
    pins = resolve(requirement, target)
    start = time.perf_counter()
    with HttpClient() as client:
        index = SimpleIndex(client, configured_indexes(os.environ, Path.cwd()))
        read = partial(read_one, client=client, index=index, target=target, stream=int(float(stream) * MEGABYTE))
        with ThreadPoolExecutor(8) as pool:
            results = list(pool.map(read, pins))
        cost = client.cost
    seconds = time.perf_counter() - start
    for result in results:
        if result.elfs:
            report(result)
    elfs = [elf for result in results for elf in result.elfs if isinstance(elf.facts, ElfFacts)]
    directories = sum((result.directory for result in results), Cost())
    print(f"\n{requirement} for {platform}: {len(results)} wheels, {len(elfs)} ELF files")
    print(
        f"{cost.bytes_read:,} bytes ({directories.bytes_read:,} of directories), "
        f"{cost.requests} requests, {seconds:.1f} s"
    )
    named = sum(not elf.complete and not isinstance(elf.possible_names, Unavailable) for elf in elfs)
    modes = dict(Counter(str(elf.mode) for elf in elfs))
    print(f"complete: {sum(elf.complete for elf in elfs)}, names possible: {named}; modes: {modes}")


if __name__ == "__main__":
    main()
