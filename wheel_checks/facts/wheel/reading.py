"""Reads a wheel's facts from any source of bytes: the end of the file, the directory, and four small members."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from packaging.utils import canonicalize_name

from wheel_checks.errors import FormatError, SourceError
from wheel_checks.facts.accelerator.verdict import AcceleratorFacts, judge
from wheel_checks.facts.archive.content import verify_content
from wheel_checks.facts.archive.facts import Archive, ArchiveFault
from wheel_checks.facts.archive.members import MemberContents, ranges_of, read_members
from wheel_checks.facts.wheel.facts import NO_SIDECAR, Depth, WheelFacts
from wheel_checks.formats.digests import StatedHash, compare_hashes, first_difference
from wheel_checks.formats.index_page import IndexFile
from wheel_checks.formats.wheel.core_metadata import MAX_SIZE as LARGEST_METADATA
from wheel_checks.formats.wheel.core_metadata import CoreMetadata, parse_core_metadata
from wheel_checks.formats.wheel.record import MAX_SIZE as LARGEST_RECORD
from wheel_checks.formats.wheel.record import Record, parse_record
from wheel_checks.formats.wheel.variant_label import VARIANT_MEMBER
from wheel_checks.formats.wheel.version_file import MAX_SIZE as LARGEST_VERSION_FILE
from wheel_checks.formats.wheel.version_file import VersionFile, parse_version_file
from wheel_checks.formats.wheel.wheel_file import MAX_SIZE as LARGEST_WHEEL_FILE
from wheel_checks.formats.wheel.wheel_file import parse_wheel_file
from wheel_checks.formats.wheel.wheel_name import WheelName, parse_wheel_name
from wheel_checks.formats.zip.directory import MOST_FAULTS, EndRecord, Member, overlaps, read_directory
from wheel_checks.formats.zip.end_record import EndRecordTruncatedError, find_end_record
from wheel_checks.formats.zip.file_signature import describe_head
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource
from wheel_checks.targets.of_wheel import markers_of_tags, target_of_tags
from wheel_checks.targets.target import OLDEST_GLIBC, Target

if TYPE_CHECKING:  # few wheels are variants
    from wheel_checks.facts.wheel.variant import VariantFacts, VariantIndex

TAIL = 64 * 1024  # bytes; holds the end record, and the whole directory of most wheels
QUICK_BYTES = 1_400_000  # what a remote wheel may cost at depth quick; RECORD is read when it fits
_LARGEST_VARIANT = 8 << 20  # bytes; its reader says how many it takes
_HEAD = 512  # bytes that tell what a file is that is no archive
_NO_METADATA = Unavailable("the wheel has no METADATA")
VERSION_FILES = 8  # more than any real wheel has at the top of its packages

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Request:
    """Which wheel to read: its file name, what the index says of it, for which target, and how deep.

    ``read_sidecar`` fetches the METADATA that the index serves next to the wheel (PEP 658), None when it serves none.
    ``read_variants`` tells what the place of a variant wheel says of the variants of its release.
    ``gpu_code`` asks for the GPU code at any depth: exact from depth gpu on, else what few bytes tell.
    """

    file_name: str
    listing: IndexFile | None = None
    target: Target | None = None
    depth: Depth = Depth.QUICK
    read_sidecar: Callable[[], bytes] | None = None
    gpu_code: bool = False
    read_variants: Callable[[], VariantIndex | Unavailable] | None = None


def read_wheel(source: ByteSource, request: Request) -> WheelFacts:
    """The facts of one wheel; those of a broken archive have ``broken`` set.

    Raises SourceError when bytes cannot be had.
    """
    started = time.perf_counter()
    name = _parsed(partial(parse_wheel_name, request.file_name))
    target = request.target or (None if isinstance(name, Unavailable) else target_of_tags(name.tags))
    request = replace(request, target=target)
    size, tail = source.read_tail(TAIL)
    try:
        facts = _read(source, request, size, name, _read_archive(source, size, tail))
    except FormatError as error:
        facts = _broken(source, request, size, name, error, tail)
    cost = source.cost
    return replace(
        facts,
        bytes_read=facts.bytes_read + cost.bytes_read,
        bytes_cached=cost.bytes_cached,
        requests=facts.requests + cost.requests,
        seconds=time.perf_counter() - started,
    )


def _parsed(parse: Callable[[], T]) -> T | Unavailable:
    try:
        return parse()
    except FormatError as error:
        return Unavailable(str(error))


def read_archive(source: ByteSource) -> Archive:
    """The archive as its central directory describes it, and nothing else. Raises FormatError and SourceError."""
    return _read_archive(source, *source.read_tail(TAIL))


def _read_archive(source: ByteSource, size: int, tail: bytes) -> Archive:
    start = size - len(tail)

    def read(offset: int, length: int) -> bytes:
        """Bytes of the file, of which the tail is at hand already."""
        if offset >= start:
            return tail[offset - start : offset - start + length]
        return source.read(offset, min(length, start - offset)) + tail[: max(0, offset + length - start)]

    end = _end_record(source, size, tail)
    members, faults = read_directory(read(end.directory_offset, end.directory_size), end)
    found = [ArchiveFault("directory", fault.message, fault.member) for fault in faults]
    shared = overlaps(members, end.directory_offset)
    for a, b in shared[:MOST_FAULTS]:
        what = f"{a.name} and {b.name} share bytes" if b else f"{a.name} runs into the central directory"
        found.append(ArchiveFault("overlap", what, a.name))
    if len(shared) > MOST_FAULTS:
        found.append(ArchiveFault("overlap", f"and {len(shared) - MOST_FAULTS:,} more pairs of members"))
    return Archive(end, tuple(members), tuple(found))


def _end_record(source: ByteSource, size: int, tail: bytes) -> EndRecord:
    try:
        return find_end_record(tail, size)
    except EndRecordTruncatedError as more:
        missing = size - len(tail) - more.needed_offset
        return find_end_record(source.read(more.needed_offset, missing) + tail, size)


def _broken(
    source: ByteSource, request: Request, size: int, name: WheelName | Unavailable, error: FormatError, tail: bytes
) -> WheelFacts:
    """Facts of a file that is no readable archive: why, and what the file looks like instead."""
    looks = describe_head(tail[:_HEAD] if len(tail) == size else source.read(0, _HEAD))
    unreadable = Unavailable("the archive cannot be read", "see WHL001")
    return WheelFacts(
        file_name=request.file_name,
        location=source.location,
        size=size,
        name=name,
        archive=unreadable,
        metadata=unreadable,
        sidecar=unreadable,
        wheel_file=unreadable,
        record=unreadable,
        hash_faults=unreadable,
        accelerator=unreadable,
        listing=request.listing,
        target=request.target,
        broken=f"{error.what}; it looks like {looks}" if size else "the file is empty",
    )


def _read(
    source: ByteSource, request: Request, size: int, name: WheelName | Unavailable, archive: Archive
) -> WheelFacts:
    dist_infos = _dist_infos(archive)
    dist_info = _own_dist_info(dist_infos, name)
    metadata_name, wheel_name, record_name = (f"{dist_info}/{file}" for file in ("METADATA", "WHEEL", "RECORD"))
    variant_name = f"{dist_info}/{VARIANT_MEMBER}"
    version_names = _version_members(archive.members)
    wanted = {metadata_name: LARGEST_METADATA, wheel_name: LARGEST_WHEEL_FILE, variant_name: _LARGEST_VARIANT}
    wanted |= dict.fromkeys(version_names, LARGEST_VERSION_FILE)
    skip_record = _record_is_too_dear(source, request, archive, [*wanted, record_name])
    read = read_members(source, archive, wanted if skip_record else wanted | {record_name: LARGEST_RECORD})
    archive = replace(archive, faults=archive.faults + read.faults, local_headers_read=read.headers_read)
    metadata = read.parse(metadata_name, parse_core_metadata)
    record = read.parse(record_name, parse_record) if skip_record is None else skip_record
    versions = _version_files(read, version_names)
    facts = WheelFacts(
        file_name=request.file_name,
        location=source.location,
        size=size,
        name=name,
        archive=archive,
        metadata=metadata,
        sidecar=NO_SIDECAR,
        wheel_file=read.parse(wheel_name, parse_wheel_file),
        record=record,
        hash_faults=Unavailable("contents are not compared at depth quick", "--depth full reads every byte"),
        accelerator=_accelerator(archive, versions, metadata, _environment(request, name)),
        version_files=versions,
        dist_infos=dist_infos,
        listing=request.listing,
        target=request.target,
    )
    if _is_variant(name) or variant_name in read.contents:
        facts = replace(facts, variant=_variant(request, name, variant_name, read))
    if request.read_sidecar:
        facts = _with_sidecar(facts, request.read_sidecar, read.contents.get(metadata_name, _NO_METADATA))
    if request.depth.includes(Depth.LINKS):
        facts = _with_elfs(facts, source, archive, whole=request.depth is Depth.FULL)
    if request.gpu_code or request.depth.includes(Depth.GPU):
        facts = _with_gpu_code(facts, source, archive, exact=request.depth.includes(Depth.GPU))
    return _with_content(facts, source, archive, record) if request.depth is Depth.FULL else facts


def _is_variant(name: WheelName | Unavailable) -> bool:
    return not isinstance(name, Unavailable) and bool(name.variant)


def _variant(request: Request, name: WheelName | Unavailable, member: str, read: MemberContents) -> VariantFacts:
    from wheel_checks.facts.wheel.variant import VariantFacts
    from wheel_checks.formats.wheel.variant_metadata import parse_variant_metadata

    label = "" if isinstance(name, Unavailable) else name.variant
    unknown = Unavailable("the wheel was not found on an index", "give its requirement with --index-url")
    index = request.read_variants() if request.read_variants and label else unknown
    return VariantFacts(label, member, read.parse(member, parse_variant_metadata), index)


def _with_elfs(facts: WheelFacts, source: ByteSource, archive: Archive, *, whole: bool) -> WheelFacts:
    """With what the loader goes by; of a variant, which may claim a level of the CPU, also the level that is marked."""
    from wheel_checks.facts.elf.native_members import read_native_members
    from wheel_checks.formats.elf.file import LOADER_PARTS, Part

    parts = LOADER_PARTS if facts.variant is None else LOADER_PARTS | {Part.ISA_LEVEL}
    return replace(facts, elfs=read_native_members(source, archive, whole=whole, parts=parts))


def _with_gpu_code(facts: WheelFacts, source: ByteSource, archive: Archive, *, exact: bool) -> WheelFacts:
    """With the GPU code. Unless it is to be ``exact``, nothing is read of a wheel that is built for something else."""
    from wheel_checks.facts.gpu.code import is_for_others
    from wheel_checks.facts.gpu.reading import read_gpu_code

    built_for = facts.accelerator
    if not exact and not isinstance(built_for, Unavailable) and is_for_others(built_for):
        return replace(facts, gpu_code=Unavailable(f"the wheel is {built_for.label}"))
    elfs = None if isinstance(facts.elfs, Unavailable) else facts.elfs
    return replace(facts, gpu_code=read_gpu_code(source, archive, elfs, exact=exact))


def _dist_infos(archive: Archive) -> tuple[str, ...]:
    folders = (member.name.partition("/") for member in archive.members)
    return tuple(dict.fromkeys(folder for folder, slash, _ in folders if slash and folder.endswith(".dist-info")))


def _own_dist_info(dist_infos: tuple[str, ...], name: WheelName | Unavailable) -> str:
    """The dist-info folder that an installer would read: the only one, or the one that bears the wheel's name."""
    if not isinstance(name, Unavailable):
        for folder in dist_infos:
            if canonicalize_name(folder.partition("-")[0]) == canonicalize_name(name.distribution):
                return folder
    return dist_infos[0] if dist_infos else "*.dist-info"


def _version_members(members: tuple[Member, ...]) -> list[str]:
    """``*/version.py`` at the top of the wheel's packages."""
    found = [
        m.name
        for m in members
        if m.name.endswith("/version.py") and m.name.count("/") == 1 and m.size <= LARGEST_VERSION_FILE
    ]
    return found[:VERSION_FILES]


def _version_files(read: MemberContents, names: list[str]) -> tuple[VersionFile, ...]:
    parsed = [read.parse(name, partial(parse_version_file, name)) for name in names]
    return tuple(file for file in parsed if not isinstance(file, Unavailable))


def _record_is_too_dear(
    source: ByteSource, request: Request, archive: Archive, wanted: list[str]
) -> Unavailable | None:
    """Why RECORD is not read: a remote wheel at depth quick must stay below QUICK_BYTES. None when it is read."""
    if not source.remote or request.depth is Depth.FULL:
        return None
    by_name = {member.name: member for member in archive.members}
    chosen = [by_name[name] for name in wanted if name in by_name]
    planned = sum(length for _, length in ranges_of(archive.members, chosen, archive.end.directory_offset))
    if max(TAIL, archive.end.directory_size) + planned <= QUICK_BYTES:
        return None
    size = by_name[wanted[-1]].compressed_size if wanted[-1] in by_name else 0
    return Unavailable(f"RECORD ({size:,} bytes) is not read from afar at depth quick", "--depth full reads it")


def _accelerator(
    archive: Archive, versions: tuple[VersionFile, ...], metadata: CoreMetadata | Unavailable, here: dict[str, str]
) -> AcceleratorFacts:
    linux = {"os_name": "posix", "platform_system": "Linux", "sys_platform": "linux"}
    everywhere = [here | linux | {"platform_machine": machine} for machine in OLDEST_GLIBC]
    requirements = () if isinstance(metadata, Unavailable) else metadata.requirements
    members = [member.name for member in archive.members]
    return judge(members, versions, requirements, here, [markers for markers in everywhere if markers != here])


def _environment(request: Request, name: WheelName | Unavailable) -> dict[str, str]:
    """The marker variables to judge by; without a platform of its own (``py3-none-any``) those of this machine."""
    if request.target is not None:
        return request.target.markers()
    return markers_of_tags(() if isinstance(name, Unavailable) else name.tags)


def _with_sidecar(facts: WheelFacts, read_sidecar: Callable[[], bytes], own: bytes | Unavailable) -> WheelFacts:
    """With what the index serves as the wheel's METADATA. One with another hash than is stated is not used."""
    try:
        data = read_sidecar()
    except SourceError as error:
        missing = Unavailable(f"the METADATA that the index offers for the wheel cannot be fetched: {error}")
        return replace(facts, sidecar=missing, sidecar_hash=missing, sidecar_difference=missing)
    facts = replace(facts, bytes_read=len(data), requests=1)
    stated = facts.listing.core_metadata if facts.listing else None
    hash_ = compare_hashes(data, stated or {}) or Unavailable("the index states no hash of the METADATA")
    if isinstance(hash_, StatedHash) and hash_.is_wrong:
        unused = Unavailable("the METADATA that the index serves is not used: it has another hash than stated")
        return replace(facts, sidecar=unused, sidecar_hash=hash_, sidecar_difference=unused)
    difference = own if isinstance(own, Unavailable) else first_difference(data, own)
    sidecar = _parsed(partial(parse_core_metadata, data))
    return replace(facts, sidecar=sidecar, sidecar_hash=hash_, sidecar_difference=difference)


def _with_content(facts: WheelFacts, source: ByteSource, archive: Archive, record: Record | Unavailable) -> WheelFacts:
    content = verify_content(source, facts.size, archive, record)
    faults = dict.fromkeys(archive.faults + content.faults)  # a member read on its own before is told once
    return replace(
        facts,
        archive=replace(archive, faults=tuple(faults), local_headers_read=content.headers_read),
        hash_faults=content.hash_faults,
        content_sha256=content.sha256,
    )
