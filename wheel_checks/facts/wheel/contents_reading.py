"""Reads the facts in a wheel's bytes, and nothing else: the same for every target, index, command and expectation.

:mod:`wheel_checks.facts.wheel.reading` makes ``WheelFacts`` of these contents and of the request. A fact belongs here
when it follows only from the file. Its reader is a step of :func:`read_contents`, or a function that takes contents and
returns them with one more fact, like :func:`with_gpu_code`. Each step caches its result in ``kept`` under a name with
its depth; see :mod:`wheel_checks.facts.archive.kept`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

from wheel_checks.errors import FormatError
from wheel_checks.facts.accelerator.shown import QUICK
from wheel_checks.facts.archive.columns import SizedArchive
from wheel_checks.facts.archive.content import Content, verify_content
from wheel_checks.facts.archive.facts import MAX_READ, Archive, ArchiveFault
from wheel_checks.facts.archive.kept import NOTHING_KEPT, AsJson, FileFacts
from wheel_checks.facts.archive.map import ArchiveMap, map_archive
from wheel_checks.facts.archive.members import MemberContents, ranges_of, read_members
from wheel_checks.facts.archive.reading import TAIL, read_sized_archive
from wheel_checks.facts.security.disguise import Disguised, read_disguised
from wheel_checks.facts.security.startup import startup_facts, startup_members
from wheel_checks.facts.wheel.contents import WheelContents
from wheel_checks.facts.wheel.depth import Depth
from wheel_checks.facts.wheel.native_code import read_accelerator, with_absence, with_glance, with_gpu_code
from wheel_checks.facts.wheel.small_members import (
    EGG_INFOS,
    dist_infos,
    egg_info_facts,
    egg_infos,
    own_dist_info,
    version_files,
    version_members,
)
from wheel_checks.formats.wheel.core_metadata import MAX_SIZE as LARGEST_METADATA
from wheel_checks.formats.wheel.core_metadata import CoreMetadata, parse_core_metadata
from wheel_checks.formats.wheel.record import MAX_SIZE as LARGEST_RECORD
from wheel_checks.formats.wheel.record import parse_record
from wheel_checks.formats.wheel.variant_label import VARIANT_MEMBER
from wheel_checks.formats.wheel.version_file import MAX_SIZE as LARGEST_VERSION_FILE
from wheel_checks.formats.wheel.wheel_file import MAX_SIZE as LARGEST_WHEEL_FILE
from wheel_checks.formats.wheel.wheel_file import parse_wheel_file
from wheel_checks.formats.wheel.wheel_name import WheelName
from wheel_checks.formats.zip.file_signature import describe_head
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

if TYPE_CHECKING:  # depth quick, the most common, need not import the readers of ELF files and GPU code
    from wheel_checks.formats.wheel.variant_metadata import VariantMetadata

QUICK_BYTES = 1_400_000  # the most bytes read of a remote wheel at depth quick; RECORD is read when it fits
_LARGEST_VARIANT = 8 << 20  # bytes; its reader says how many it takes
ELFS, WHOLE_ELFS = "elfs", "whole elfs"  # kept facts; the second ones are streamed if head and tail did not suffice
_NAMES = 8 * 1024 * 1024  # compressed bytes of a library that are streamed for the names that it may need
_HEAD = 512  # bytes that show the kind of a file that is not an archive
_NO_METADATA = Unavailable("the wheel has no METADATA")


def read_contents(
    source: ByteSource,
    name: WheelName | Unavailable,
    depth: Depth,
    kept: FileFacts = NOTHING_KEPT,
    max_read: int = MAX_READ,
    *,
    glance: bool = False,
) -> WheelContents:
    """The facts of the file, read as deep as ``depth``; a file that is not a readable archive has ``broken`` set.

    ``name`` is that of the file: of several dist-info folders the one with this name is read. At most ``max_read``
    bytes are streamed for its GPU code, and at depth full for its accelerator, which ``glance`` reads only partly.
    Raises SourceError.
    """
    read_tail = cache(partial(source.read_tail, TAIL))
    try:
        found = read_sized_archive(source, read_tail, kept)
        contents = _read_small_members(source, found, name, depth, kept)
        if depth is not Depth.FULL and not source.remote:
            contents = _with_disguised(_with_map(contents, source, kept), source, kept)
        look = with_glance if glance else partial(read_accelerator, wanted="", most=QUICK)
        contents = look(contents, source, kept)
        contents = _with_heads(contents, source, name, kept)
        if depth is Depth.FULL:
            contents = with_absence(contents, source, kept, max_read)
        if depth.includes(Depth.LINKS):
            contents = _with_elfs(contents, source, name, kept)
        if depth.includes(Depth.GPU):
            contents = with_gpu_code(contents, source, kept, max_read)
        return _with_hashes(contents, source, kept) if depth is Depth.FULL else contents
    except FormatError as error:
        return _broken(source, *read_tail(), depth, error)


def read_metadata(source: ByteSource, name: WheelName, kept: FileFacts = NOTHING_KEPT) -> CoreMetadata:
    """METADATA of the wheel, and nothing of its code. Raises FormatError if missing or unreadable, SourceError."""
    found = read_sized_archive(source, cache(partial(source.read_tail, TAIL)), kept)
    metadata = _read_small_members(source, found, name, Depth.QUICK, kept).metadata
    if isinstance(metadata, Unavailable):
        raise FormatError(metadata.reason)
    return metadata


def _broken(source: ByteSource, size: int, tail: bytes, depth: Depth, error: FormatError) -> WheelContents:
    """Contents of a file that is not a readable archive: why, and the apparent kind of the file."""
    looks = describe_head(tail[:_HEAD] if len(tail) == size else source.read(0, _HEAD))
    unreadable = Unavailable("the archive cannot be read", "see WHL001")
    return WheelContents(
        size=size,
        depth=depth,
        archive=unreadable,
        metadata=unreadable,
        metadata_bytes=unreadable,
        wheel_file=unreadable,
        record=unreadable,
        hash_faults=unreadable,
        startup=unreadable,
        disguised=unreadable,
        broken=f"{error.what}; it looks like {looks}" if size else "the file is empty",
    )


def _read_small_members(
    source: ByteSource, found: SizedArchive, name: WheelName | Unavailable, depth: Depth, kept: FileFacts
) -> WheelContents:
    """The members of depth quick: METADATA, WHEEL, RECORD, ``variant.json`` and the version files."""
    archive = found.archive
    folders = dist_infos(archive)
    dist_info = own_dist_info(folders, name)
    metadata_name, wheel_name, record_name = (f"{dist_info}/{file}" for file in ("METADATA", "WHEEL", "RECORD"))
    variant_name = f"{dist_info}/{VARIANT_MEMBER}"
    version_names = version_members(archive.members)
    wanted = {metadata_name: LARGEST_METADATA, wheel_name: LARGEST_WHEEL_FILE, variant_name: _LARGEST_VARIANT}
    wanted |= dict.fromkeys(version_names, LARGEST_VERSION_FILE)
    startup = startup_members(archive.members, dist_info)
    eggs = egg_infos(archive.members)
    wanted |= startup | dict.fromkeys(list(eggs.values())[:EGG_INFOS], LARGEST_METADATA)
    skip_record = _record_is_too_dear(source, archive, [*wanted, record_name], depth)
    read = kept.remember(
        f"members of {dist_info}{'' if skip_record else ' and RECORD'}",
        AsJson(MemberContents),
        lambda: read_members(source, archive, wanted if skip_record else wanted | {record_name: LARGEST_RECORD}),
    )
    return WheelContents(
        size=found.size,
        depth=depth,
        archive=replace(archive, faults=archive.faults + read.faults, local_headers_read=read.headers_read),
        metadata=read.parse(metadata_name, parse_core_metadata),
        metadata_bytes=read.contents.get(metadata_name, _NO_METADATA),
        wheel_file=read.parse(wheel_name, parse_wheel_file),
        record=read.parse(record_name, parse_record) if skip_record is None else skip_record,
        dist_infos=folders,
        version_files=version_files(read, version_names),
        variant_member=variant_name,
        variant=_variant(read, variant_name),
        egg_infos=egg_info_facts(eggs, read),
        startup=startup_facts(archive.members, dist_info, {n: c for n, c in read.contents.items() if n in startup}),
    )


def _variant(read: MemberContents, member: str) -> VariantMetadata | Unavailable | None:
    if member not in read.contents:
        return None
    from wheel_checks.formats.wheel.variant_metadata import parse_variant_metadata

    return read.parse(member, parse_variant_metadata)


def _with_elfs(
    contents: WheelContents, source: ByteSource, name: WheelName | Unavailable, kept: FileFacts
) -> WheelContents:
    """With the facts that the loader uses; of a variant, which may claim a CPU level, also the marked level."""
    from wheel_checks.facts.elf.kept import MemberElfs
    from wheel_checks.facts.elf.named_imports import kept_named_imports
    from wheel_checks.facts.elf.native_members import read_native_members
    from wheel_checks.facts.elf.reading import FAR
    from wheel_checks.facts.wheel.module_sources import kept_module_sources
    from wheel_checks.formats.elf.file import LOADER_PARTS, Part

    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents
    is_variant = contents.variant is not None or (not isinstance(name, Unavailable) and bool(name.variant))
    parts = LOADER_PARTS | {Part.ISA_LEVEL} if is_variant else LOADER_PARTS
    whole = contents.depth.includes(Depth.GPU)  # which streams the largest anyway
    elfs = kept.remember(
        f"{'variant ' * is_variant}{WHOLE_ELFS if whole else ELFS}",
        MemberElfs(archive.members),
        lambda: read_native_members(source, archive, effort=FAR, whole=whole, parts=parts, stream_names=_NAMES),
    )
    stable = not isinstance(name, Unavailable) and any(tag.abi == "abi3" for tag in name.tags)
    contents = replace(contents, elfs=elfs, imports=kept_named_imports(source, archive, kept, stable=stable))
    return replace(contents, sources=kept_module_sources(source, archive, kept))


def _with_heads(
    contents: WheelContents, source: ByteSource, name: WheelName | Unavailable, kept: FileFacts
) -> WheelContents:
    """With the first bytes of native members: of a local file, and of a wheel for macOS, Windows or any platform.

    From depth links on those of every wheel.
    """
    archive = contents.archive
    if isinstance(archive, Unavailable) or isinstance(name, Unavailable):
        return contents
    from wheel_checks.facts.wheel.native_heads import NativeHeads, is_for_any, is_for_other_system, read_native_heads

    says_machine = is_for_other_system(name.tags) or is_for_any(name.tags)
    if source.remote and not says_machine and not contents.depth.includes(Depth.LINKS):
        return contents
    heads = kept.remember("heads of native members", AsJson(NativeHeads), lambda: read_native_heads(source, archive))
    return replace(contents, heads=heads)


def _with_map(contents: WheelContents, source: ByteSource, kept: FileFacts) -> WheelContents:
    """With the bytes between members: of a local file that costs little."""
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents
    found = kept.remember("map", AsJson(ArchiveMap), lambda: map_archive(source, archive))
    return replace(contents, archive=_mapped(archive, found.faults, found.headers_read))


def _with_disguised(contents: WheelContents, source: ByteSource, kept: FileFacts) -> WheelContents:
    """With native code under the names of data, by the first bytes of each member of a local file."""
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents
    found = kept.remember("disguised", AsJson(Disguised), lambda: read_disguised(source, archive))
    return replace(contents, disguised=found.found)


def _mapped(archive: Archive, faults: tuple[ArchiveFault, ...], headers_read: int) -> Archive:
    """With the faults of a map, which has more facts of gaps than the directory, and repeats those of small members."""
    known = [fault for fault in archive.faults if fault.kind != "gap"]
    return replace(
        archive, faults=tuple(dict.fromkeys((*known, *faults))), local_headers_read=headers_read, mapped=True
    )


def _with_hashes(contents: WheelContents, source: ByteSource, kept: FileFacts) -> WheelContents:
    """With the results of reading every byte."""
    archive = contents.archive
    if isinstance(archive, Unavailable):
        return contents
    content = kept.remember(
        "content",
        AsJson(Content),
        lambda: verify_content(source, contents.size, archive, contents.record),
        is_sound=lambda found: kept.are_bytes_of(found.sha256),
    )
    return replace(
        contents,
        archive=_mapped(archive, content.faults, content.headers_read),
        hash_faults=content.hash_faults,
        content_sha256=content.sha256,
        disguised=content.disguised,
    )


def _record_is_too_dear(source: ByteSource, archive: Archive, wanted: list[str], depth: Depth) -> Unavailable | None:
    """Why RECORD is not read: a remote wheel at depth quick must stay below QUICK_BYTES. None when it is read."""
    if not source.remote or depth is Depth.FULL:
        return None
    by_name = {member.name: member for member in archive.members}
    chosen = [by_name[name] for name in wanted if name in by_name]
    planned = sum(length for _, length in ranges_of(archive.members, chosen, archive.end.directory_offset))
    if max(TAIL, archive.end.directory_size) + planned <= QUICK_BYTES:
        return None
    size = by_name[wanted[-1]].compressed_size if wanted[-1] in by_name else 0
    return Unavailable(f"RECORD ({size:,} bytes) of a remote wheel is not read at depth quick", "--depth full reads it")
