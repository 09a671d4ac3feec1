"""The central directory of a zip archive (PKWARE APPNOTE 6.3.10), entry by entry.

Stricter than unpackers on purpose: whatever lets two unpackers see two different archives is refused or reported.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.extra_fields import extra_faults, widen

MAX_ENTRIES = 250_000
"""Members of an archive. Real wheels have up to 58,000 (homeassistant 2026.11), in a directory of 6 MB."""

MOST_FAULTS = 50
"""Faults of one kind that are named; more of them are counted."""

DEFLATE_LIMIT = 1032  # bytes that one byte of deflate can become: 258 for two bits

REBUILD = "the archive is damaged; download or build it again"
UTF8_FLAG = 0x800
LOCAL_HEADER_SIZE = 30

_ENTRY = struct.Struct("<4sxBBx2H4x3I4H2x2I")  # 4.3.12, see _read_entry
_ENTRY_SIGNATURE = b"PK\1\2"
_RECORDS = {
    b"PK\5\6": "an end record",
    b"PK\6\6": "a zip64 end record",
    b"PK\6\7": "a zip64 locator",
    b"PK\3\4": "a member",
    _ENTRY_SIGNATURE: "a directory",
}
_CONTROL = re.compile(rb"[\1-\x08]")

MOST_SLACK = 0xFFFF + 24
"""Bytes between a member's data and its name, at most: the longest extra fields, and the longest data descriptor."""

NEWEST_VERSION = 63  # of the format (APPNOTE 4.4.3.2); installers refuse members that need a newer one


@dataclass(frozen=True, slots=True)
class EndRecord:
    """Where the central directory is: absolute offset and size in bytes, the number of entries, zip64 or not."""

    directory_offset: int
    directory_size: int
    entries: int
    zip64: bool
    comment_size: int


class Member(NamedTuple):
    """One entry of the central directory. Sizes in bytes; ``header_offset`` is that of the local header.

    A tuple, because a wheel has 13,000 of them and a frozen dataclass takes three times as long to make.
    """

    name: str
    raw_name: bytes
    method: int
    flags: int
    crc32: int
    compressed_size: int
    size: int
    header_offset: int
    external_attributes: int
    create_system: int

    @property
    def is_directory(self) -> bool:
        """True for a folder entry, whose name ends with a slash."""
        return self.name.endswith("/")

    @property
    def is_encrypted(self) -> bool:
        """True when bit 0 or 6 of the general purpose flags is set."""
        return bool(self.flags & 0x41)

    @property
    def is_patched(self) -> bool:
        """True when bit 5 of the flags says that the data are a patch of other data (4.4.4)."""
        return bool(self.flags & 0x20)

    @property
    def is_symlink(self) -> bool:
        """True when a Unix creator marked the member as a symbolic link."""
        return self.create_system == 3 and (self.external_attributes >> 28) == 0o12


@dataclass(frozen=True, slots=True)
class DirectoryFault:
    """One thing wrong with the directory that does not stop it from being read.

    ``kind`` is "count", "trailing", "name-encoding", "extra", "comment", "version", "index" or "size"; those beyond
    ``MOST_FAULTS`` of a kind are counted. ``member`` is "" if none is meant; ``case`` is a row of
    ``data/installers.toml``.
    """

    kind: str
    message: str
    member: str = ""
    case: str = ""


def read_directory(data: bytes, end: EndRecord) -> tuple[tuple[Member, ...], tuple[DirectoryFault, ...]]:
    """The members, in the order of the central directory ``data``, and what is wrong short of making it unreadable.

    Raises FormatError, with the number and the offset of the entry, when an entry is malformed.
    """
    if len(data) != end.directory_size:
        raise FormatError(f"the central directory has {len(data)} bytes", expected=f"{end.directory_size} bytes")
    members: list[Member] = []
    faults: list[DirectoryFault] = []
    counts: Counter[str] = Counter()
    position = 0
    while data.startswith(_ENTRY_SIGNATURE, position) and len(members) < MAX_ENTRIES:
        found: list[DirectoryFault] = []
        try:
            member, position = _read_entry(data, position, found)
        except FormatError as fault:
            raise _bad_entry(fault.what, len(members), end.directory_offset + position) from None
        members.append(member)
        if lie := _impossible_size(member):
            found.append(DirectoryFault("size", lie, member.name))
        for one in found:
            counts[one.kind] += 1
            if counts[one.kind] <= MOST_FAULTS:
                faults.append(one)
    faults += [
        DirectoryFault(kind, f"and {count - MOST_FAULTS:,} more faults of this kind")
        for kind, count in counts.items()
        if count > MOST_FAULTS
    ]
    if position < len(data):
        if len(members) < end.entries:
            raise _bad_entry("does not start with its signature", len(members), end.directory_offset + position)
        left = len(data) - position
        faults.append(DirectoryFault("trailing", f"{left} bytes follow the last entry of the central directory"))
    if len(members) != end.entries:
        message = f"the end record states {end.entries} entries, but the central directory has {len(members)}"
        faults.append(DirectoryFault("count", message))
    return tuple(members), tuple(faults)


def _read_entry(data: bytes, position: int, faults: list[DirectoryFault]) -> tuple[Member, int]:
    """The entry at ``position`` and the position after it. Raises FormatError saying only what is wrong."""
    name_start = position + _ENTRY.size
    if name_start > len(data):
        raise FormatError("is truncated")
    _, system, version, flags, method, crc32, packed, size, name_size, extra_size, comment_size, disk, *more = (
        _ENTRY.unpack_from(data, position)
    )
    attributes, offset = more
    name_end = name_start + name_size
    entry_end = name_end + extra_size + comment_size
    if entry_end > len(data):
        raise FormatError("is truncated")
    if disk not in (0, 0xFFFF):
        raise FormatError("claims to be on another disk")
    raw_name = data[name_start:name_end]
    try:
        name = raw_name.decode("utf-8" if flags & UTF8_FLAG or raw_name.isascii() else "cp437")
    except UnicodeDecodeError:
        name = raw_name.decode("utf-8", "replace")
        faults.append(DirectoryFault("name-encoding", f"the name {name!r} is marked as UTF-8 but is not", name))
    if extra_size or 0xFFFFFFFF in (size, packed, offset):
        extra = data[name_end : name_end + extra_size]
        faults += [
            DirectoryFault(fault.kind, f"{name!r} {fault.message} (in the directory)", name, fault.case)
            for fault in extra_faults(extra, raw_name, (size, packed), (offset, disk))
        ]
        size, packed, offset = widen(extra, size, packed, offset)
    if comment_size:
        faults.append(DirectoryFault("index", f"{name!r} has a comment", name, "comment-harmless"))
    if comment_size and (said := suspicious_comment(data[name_end + extra_size : entry_end])):
        faults.append(DirectoryFault("comment", f"the comment of {name!r} {said}", name, "comment-member"))
    if version > NEWEST_VERSION:
        message = f"{name!r} needs version {version / 10} of the format"
        faults.append(DirectoryFault("version", message, name, "version"))
    return Member(name, raw_name, method, flags, crc32, packed, size, offset, attributes, system), entry_end


def suspicious_comment(comment: bytes) -> str:
    """Why a comment could be taken for a part of an archive, "" when it could not.

    Every record of an archive contains a byte from 1 to 8 in its signature, and such bytes are in no text.
    """
    for signature, record in _RECORDS.items():
        if signature in comment:
            return f"contains the signature of {record}"
    return "contains control characters, as archives do" if _CONTROL.search(comment) else ""


def _impossible_size(member: Member) -> str:
    """What is wrong with the sizes of a member, "" when its data can have them."""
    if member.method == 0 and not member.is_encrypted and member.size != member.compressed_size:
        return f"{member.name!r} is stored in {member.compressed_size:,} bytes but claims {member.size:,}"
    if member.method == 8 and member.size > DEFLATE_LIMIT * member.compressed_size:
        return f"{member.name!r} claims {member.size:,} bytes, to which {member.compressed_size:,} cannot inflate"
    return ""


def _bad_entry(what: str, number: int, offset: int) -> FormatError:
    return FormatError(f"entry {number + 1} of the central directory, at byte {offset}, {what}", hint=REBUILD)


def apart(members: Iterable[Member]) -> list[Member]:
    """The members that share no byte with one before them in the archive, as far as the directory says, in its order.

    Whoever reads these alone reads no byte of the archive twice.
    """
    taken: set[int] = set()
    reach = 0
    ordered = list(members)
    for number in sorted(range(len(ordered)), key=lambda number: ordered[number].header_offset):
        member = ordered[number]
        if member.header_offset >= reach:
            taken.add(number)
            reach = member.header_offset + LOCAL_HEADER_SIZE + len(member.raw_name) + member.compressed_size
    return [member for number, member in enumerate(ordered) if number in taken]


def slack(members: Sequence[Member], directory_offset: int) -> list[tuple[int, Member]]:
    """The bytes after each member's header, name and data up to what follows, where there are any.

    Only local headers say what they are: extra fields, a data descriptor, or nothing that the archive knows of.
    """
    ordered = sorted(members, key=lambda member: member.header_offset)
    ends = [*(member.header_offset for member in ordered[1:]), directory_offset]
    found = []
    for member, end in zip(ordered, ends, strict=True):
        length = end - member.header_offset - LOCAL_HEADER_SIZE - len(member.raw_name) - member.compressed_size
        if length > 0:
            found.append((length, member))
    return found


def overlaps(members: Iterable[Member], directory_offset: int) -> list[tuple[Member, Member | None]]:
    """Pairs of members whose local header and data share bytes; None stands for the central directory.

    Each member is reported at most once as the later of two and once against the directory. The extra fields of local
    headers are not counted, as they are unknown here. Takes O(n log n).
    """
    found: list[tuple[Member, Member | None]] = []
    reach, farthest = 0, None
    for member in sorted(members, key=lambda member: member.header_offset):
        if farthest is not None and member.header_offset < reach:
            found.append((farthest, member))
        end = member.header_offset + LOCAL_HEADER_SIZE + len(member.raw_name) + member.compressed_size
        if end > directory_offset:
            found.append((member, None))
        if end > reach:
            reach, farthest = end, member
    return found
