"""Accounts for every byte in front of the central directory: headers, data, descriptors, and nothing else.

Two unpackers agree about an archive when its members lie one after the other from its first byte on, and each header
says what the directory says. Whoever reads from the front sees a hidden member, whoever reads from the end does not.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive, ArchiveFault
from wheel_checks.formats.zip.data_descriptor import LONGEST, SIGNATURE, read_descriptor
from wheel_checks.formats.zip.directory import (
    LOCAL_HEADER_SIZE,
    MOST_FAULTS,
    MOST_SLACK,
    NEWEST_VERSION,
    Member,
    apart,
    slack,
)
from wheel_checks.formats.zip.extra_fields import extra_faults, has_zip64
from wheel_checks.formats.zip.local_header import LocalHeader, disagreements, read_local_header
from wheel_checks.sources.byte_source import ByteSource

SHOWN = 32
"""Bytes after a member that are inspected: a descriptor, and what begins after it."""

_BATCH = 4096  # headers that are held at once


@dataclass(frozen=True, slots=True)
class ArchiveMap:
    """What was found between the members, and how many local headers were read."""

    faults: tuple[ArchiveFault, ...]
    headers_read: int


def map_archive(source: ByteSource, archive: Archive) -> ArchiveMap:
    """Read every local header and the bytes between members, and none of their data. Raises SourceError."""
    faults = front_faults(archive)
    places = boundaries(archive)
    for start in range(0, len(places), _BATCH):
        batch = places[start : start + _BATCH]
        spans = [_header_span(member, end) for member, end in batch]
        found = [_read_header(member, data) for (member, _), data in zip(batch, source.read_many(spans), strict=True)]
        behind = [_behind(member, end, header) for (member, end), header in zip(batch, found, strict=True)]
        after = iter(source.read_many([(offset, min(length, SHOWN)) for offset, length in behind if length > 0]))
        for (member, _), header, (_, length) in zip(batch, found, behind, strict=True):
            if isinstance(header, ArchiveFault):
                faults.append(header)
            else:
                faults += member_faults(member, header, next(after) if length > 0 else b"", length)
    return ArchiveMap(limited(faults), len(places))


def boundaries(archive: Archive) -> list[tuple[Member, int]]:
    """The members that share no byte with another, in the order of the file, and where the next of them begins."""
    limit = archive.end.directory_offset
    ordered = sorted(apart(archive.members), key=lambda member: member.header_offset)
    ordered = [member for member in ordered if member.header_offset + LOCAL_HEADER_SIZE <= limit]
    return list(zip(ordered, [*(member.header_offset for member in ordered[1:]), limit], strict=True))


def front_faults(archive: Archive) -> list[ArchiveFault]:
    """What is in front of the first member."""
    first = min((member.header_offset for member in archive.members), default=archive.end.directory_offset)
    if first == 0:
        return []
    return [ArchiveFault("gap", f"{first:,} bytes precede the first member", case="gap-first")]


def wide_gaps(archive: Archive) -> list[ArchiveFault]:
    """What the directory alone proves: more bytes lie between two members than headers can have."""
    found = [
        ArchiveFault("gap", f"{length:,} bytes follow {member.name}, more than headers have", member.name, "gap")
        for length, member in slack(archive.members, archive.end.directory_offset)
        if length > MOST_SLACK
    ]
    return [*front_faults(archive), *found]


def member_faults(member: Member, header: LocalHeader, after: bytes, length: int) -> list[ArchiveFault]:
    """What is wrong with a local header, and with the ``length`` bytes after the data, which start with ``after``."""
    faults = header_faults(member, header)
    if length < 0:
        return [*faults, ArchiveFault("overlap", f"the data of {member.name} overlap the following bytes", member.name)]
    used = 0
    if header.has_data_descriptor:
        found, used = _descriptor_faults(member, header, after, length)
        faults += found
    elif after.startswith(SIGNATURE):
        message = f"a data descriptor follows {member.name}, but its header does not announce one"
        return [*faults, ArchiveFault("descriptor", message, member.name, "descriptor-unannounced")]
    if length > used:
        hidden = after.startswith(b"PK\3\4", used)
        what = "a member that the directory does not list is" if hidden else f"{length - used:,} unused bytes are"
        where = f"{what} after {member.name}"
        faults.append(ArchiveFault("gap", where, member.name, "hidden-member" if hidden else "gap"))
    return faults


def header_faults(member: Member, header: LocalHeader) -> list[ArchiveFault]:
    """How a member's local header contradicts the central directory, and what readers refuse of it."""
    faults = []
    if differences := disagreements(header, member):
        message = f"the local header of {member.name} contradicts the central directory: {'; '.join(differences)}"
        faults.append(ArchiveFault("header", message, member.name, "headers-differ"))
    if header.version > NEWEST_VERSION:
        message = f"{member.name!r} needs version {header.version / 10} of the format"
        faults.append(ArchiveFault("version", message, member.name, "version"))
    try:
        for fault in extra_faults(header.extra, header.name, header.written_sizes, None):
            message = f"{member.name!r} {fault.message} (in its local header)"
            faults.append(ArchiveFault(fault.kind, message, member.name, fault.case))
    except FormatError as error:
        message = f"{member.name!r} {error.what} (in its local header)"
        faults.append(ArchiveFault("extra", message, member.name, "extra-overrun"))
    return faults


def limited(faults: Sequence[ArchiveFault]) -> tuple[ArchiveFault, ...]:
    """At most ``MOST_FAULTS`` of each kind, and how many more there are."""
    shown: list[ArchiveFault] = []
    counts: dict[str, int] = {}
    for fault in faults:
        counts[fault.kind] = counts.get(fault.kind, 0) + 1
        if counts[fault.kind] <= MOST_FAULTS:
            shown.append(fault)
    more = [(kind, count - MOST_FAULTS) for kind, count in counts.items() if count > MOST_FAULTS]
    return (*shown, *(ArchiveFault(kind, f"and {count:,} more faults of this kind") for kind, count in more))


def _descriptor_faults(
    member: Member, header: LocalHeader, after: bytes, length: int
) -> tuple[list[ArchiveFault], int]:
    """What is wrong with the descriptor of a member, and how many of the bytes after its data it has."""
    here = after[: min(length, LONGEST)]
    try:
        zip64 = has_zip64(header.extra)
    except FormatError:
        return [], length  # the form is unknown, and the extra fields are reported
    found = read_descriptor(here, zip64=zip64)
    other = read_descriptor(here, zip64=not zip64)
    right = (member.crc32, member.compressed_size, member.size)
    for descriptor in (found, other):
        if descriptor is None or (descriptor.crc32, descriptor.compressed_size, descriptor.size) != right:
            continue
        if descriptor is found:
            return [], descriptor.length
        form = "four" if zip64 else "eight"
        message = f"the data descriptor of {member.name} has sizes of {form} bytes, but its header says otherwise"
        return [ArchiveFault("descriptor", message, member.name, "descriptor-form")], descriptor.length
    if found is None or after.startswith((b"PK\3\4", b"PK\1\2")):
        message = f"{member.name} has no data descriptor, but its header announces one"
        return [ArchiveFault("descriptor", message, member.name, "descriptor-missing")], 0
    message = (
        f"the data descriptor of {member.name} has CRC-32 {found.crc32:08x}, compressed size {found.compressed_size:,} "
        f"and size {found.size:,}; the directory says {right[0]:08x}, {right[1]:,} and {right[2]:,}"
    )
    return [ArchiveFault("descriptor", message, member.name, "descriptor-wrong")], found.length


def _header_span(member: Member, end: int) -> tuple[int, int]:
    """Where a local header must lie when its name is the directory's: as far as the data cannot begin before."""
    room = end - member.header_offset - member.compressed_size
    return member.header_offset, max(LOCAL_HEADER_SIZE, min(room, LOCAL_HEADER_SIZE + len(member.raw_name) + 0xFFFF))


def _read_header(member: Member, data: bytes) -> LocalHeader | ArchiveFault:
    try:
        return read_local_header(data)
    except FormatError as error:
        message = str(error) if repr(member.name) in error.what else f"{member.name!r}: {error}"
        return ArchiveFault("content", message, member.name, "header-missing")


def _behind(member: Member, end: int, header: LocalHeader | ArchiveFault) -> tuple[int, int]:
    if isinstance(header, ArchiveFault):
        return 0, 0
    data_end = member.header_offset + header.header_size + member.compressed_size
    return data_end, end - data_end
