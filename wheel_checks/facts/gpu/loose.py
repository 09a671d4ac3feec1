"""GPU code in separate files: cubins, PTX, AMD's code objects; often thousands of them in one folder.

The files of one kind in one folder are one library: the package selects one of them at run time. A few of each are
read, whose names distinguish different architectures; all of them when that is cheap or requested.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence

from wheel_checks.data import load
from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.archive.members import read_members
from wheel_checks.facts.gpu.code import LibraryGpuCode
from wheel_checks.formats.gpu.code_object import read_code_object, read_cubin, read_ptx, toolkit_of_file
from wheel_checks.formats.gpu.fatbin import Certainty, GpuCode, newest_isa
from wheel_checks.formats.gpu.offload_bundle import MAGIC, BundleScanner
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

LARGEST_FILE = 64 * 1024 * 1024
"""Bytes of one file, inflated; larger ones are Unavailable."""

_SAMPLED = 3  # files read of those in a folder that name the same architecture
_MOST_SAMPLED = 60  # of one folder
_OF_NVIDIA = (".cubin", ".ptx")
_AT_ONCE = 16 * 1024 * 1024  # compressed bytes of the files read at once
_TOKEN = re.compile(r"(?:sm|compute)_?\d{2,3}[af]?(?!\d)|gfx[0-9a-f]{3,4}(?![0-9a-f])", re.IGNORECASE)


def loose_files(members: Iterable[Member]) -> dict[str, list[Member]]:
    """The files with GPU code by a pattern for their paths, such as "kernels/*.cubin"."""
    found: dict[str, list[Member]] = defaultdict(list)
    for member in members:
        folder, slash, name = member.name.rpartition("/")
        stem, _, suffix = name.rpartition(".")  # libcudacxx has a header that is called ptx
        if stem and suffix in _READERS and not member.is_directory:
            found[f"{folder}{slash}*.{suffix}"].append(member)
    return found


def read_loose(
    source: ByteSource, archive: Archive, path: str, files: Sequence[Member], *, whole: bool
) -> LibraryGpuCode:
    """The GPU code of the ``files`` that match ``path``, all of them when ``whole``, else a sample.

    Unavailable when a file that was read is no GPU code. Raises SourceError.
    """
    chosen = list(files) if whole else _sample(files)
    certainty: Certainty = "exact" if len(chosen) == len(files) else "sampled"
    readable = {id(member) for member in unpackable(archive.members)}
    if any(id(member) not in readable or member.size > LARGEST_FILE for member in chosen):
        return LibraryGpuCode(path, Unavailable("one of its files exceeds the read limit"))
    read = _READERS[path.rpartition(".")[2]]
    counts: Counter[str] = Counter()
    toolkits: Counter[str] = Counter()
    isa: set[tuple[str, str]] = set()
    taken = 0
    for batch in _batches(chosen):
        taken += sum(member.compressed_size for member in batch)
        contents = read_members(source, archive, {member.name: LARGEST_FILE for member in batch})
        for member in batch:
            labels = contents.parse(member.name, read)
            if isinstance(labels, Unavailable):
                return LibraryGpuCode(path, labels, taken)
            counts.update(labels)
            toolkit = contents.parse(member.name, toolkit_of_file)
            if path.endswith(_OF_NVIDIA) and not isinstance(toolkit, Unavailable):
                toolkits[toolkit] += 1
                isa.update((label, toolkit.removeprefix("PTX ")) for label in labels if toolkit.startswith("PTX "))
    code = GpuCode(dict(counts), certainty, {frozenset(counts): len(chosen)}, newest_isa(isa), dict(toolkits))
    return LibraryGpuCode(path, code, taken)


def label_of_file(path: str, data: bytes) -> Sequence[str]:
    """The labels of one file of this name. Raises FormatError."""
    return _READERS[path.rpartition(".")[2]](data)


def is_loose(path: str) -> bool:
    """True for names of separate files with GPU code."""
    return path.rpartition(".")[2] in _READERS


def _sample(files: Sequence[Member]) -> list[Member]:
    """Some files for each architecture that names show, spread evenly; a smaller folder whole."""
    kinds: dict[str, list[Member]] = defaultdict(list)
    for member in files:
        kinds[" ".join(token.lower() for token in _TOKEN.findall(member.name.rpartition("/")[2]))].append(member)
    chosen: list[Member] = []
    for of_kind in kinds.values():
        step = max(1, len(of_kind) // _SAMPLED)
        chosen += of_kind[::step][:_SAMPLED]
    return chosen[:_MOST_SAMPLED]


def _batches(files: Sequence[Member]) -> Iterable[list[Member]]:
    batch: list[Member] = []
    size = 0
    for member in files:
        if batch and size + member.compressed_size > _AT_ONCE:
            yield batch
            batch, size = [], 0
        batch.append(member)
        size += member.compressed_size
    if batch:
        yield batch


def _amd(data: bytes) -> Sequence[str]:
    """The targets of a code object, or of a bundle of them."""
    if data.startswith((MAGIC, b"CCOB")):
        scanner = BundleScanner()
        scanner.feed(data)
        return list(scanner.finish().counts)
    found = read_code_object(data)
    targets = {row["machine"]: row["target"] for row in load("amdgpu_machines")["machines"]}
    if found.machine not in targets:
        raise FormatError(f"EF_AMDGPU_MACH is {found.machine:#x}", expected="a known processor")
    return [targets[found.machine] + found.features]


_READERS: dict[str, Callable[[bytes], Sequence[str]]] = {
    "cubin": lambda data: [read_cubin(data)],
    "ptx": lambda data: [read_ptx(data)],
    "hsaco": _amd,
    "co": _amd,
}
