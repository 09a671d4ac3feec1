"""The central directory of a zip archive (PKWARE APPNOTE 6.3.10), entry by entry.

Stricter than unpackers on purpose: whatever lets two unpackers see two different archives is refused or reported.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.errors import FormatError

MAX_ENTRIES = 250_000
"""Members of an archive. Real wheels have up to 58,000 (homeassistant 2026.11), in a directory of 6 MB."""

MOST_FAULTS = 50
"""Faults of one kind that are named; more of them are counted."""

DEFLATE_LIMIT = 1032  # bytes that one byte of deflate can become: 258 for two bits

REBUILD = "the archive is damaged; fetch or build it again"
UTF8_FLAG = 0x800
LOCAL_HEADER_SIZE = 30

_ENTRY = struct.Struct("<4sxB2x2H4x3I4H2x2I")  # 4.3.12, see _read_entry
_ENTRY_SIGNATURE = b"PK\1\2"

_ZIP64_EXTRA, _UNICODE_PATH_EXTRA = 0x0001, 0x7075


@dataclass(frozen=True, slots=True)
class EndRecord:
    """Where the central directory lies: absolute offset and size in bytes, the number of entries, zip64 or not."""

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
        """True when bit 0 of the general purpose flags is set."""
        return bool(self.flags & 0x1)

    @property
    def is_symlink(self) -> bool:
        """True when a Unix creator marked the member as a symbolic link."""
        return self.create_system == 3 and (self.external_attributes >> 28) == 0o12


@dataclass(frozen=True, slots=True)
class DirectoryFault:
    """One thing wrong with the directory that does not stop it from being read.

    ``kind`` is "count", "trailing", "name-encoding", "name-differs", "size" or "more", for those beyond
    ``MOST_FAULTS``; ``member`` is "" when no one member is meant.
    """

    kind: str
    message: str
    member: str = ""


def read_directory(data: bytes, end: EndRecord) -> tuple[tuple[Member, ...], tuple[DirectoryFault, ...]]:
    """The members, in the order of the central directory ``data``, and what is wrong short of making it unreadable.

    Raises FormatError, with the number and the offset of the entry, when an entry is malformed.
    """
    if len(data) != end.directory_size:
        raise FormatError(f"the central directory has {len(data)} bytes", expected=f"{end.directory_size} bytes")
    members: list[Member] = []
    faults: list[DirectoryFault] = []
    left_out = position = 0
    while data.startswith(_ENTRY_SIGNATURE, position) and len(members) < MAX_ENTRIES:
        try:
            member, position = _read_entry(data, position, faults)
        except FormatError as fault:
            raise _bad_entry(fault.what, len(members), end.directory_offset + position) from None
        members.append(member)
        if lie := _impossible_size(member):
            faults.append(DirectoryFault("size", lie, member.name))
        if len(faults) > MOST_FAULTS:
            faults.pop()
            left_out += 1
    if left_out:
        faults.append(DirectoryFault("more", f"and {left_out:,} more faults of this kind"))
    if position < len(data):
        if len(members) < end.entries:
            raise _bad_entry("does not begin with its signature", len(members), end.directory_offset + position)
        left = len(data) - position
        faults.append(DirectoryFault("trailing", f"{left} bytes follow the last entry of the central directory"))
    if len(members) != end.entries:
        message = f"the end record promises {end.entries} entries, the central directory has {len(members)}"
        faults.append(DirectoryFault("count", message))
    return tuple(members), tuple(faults)


def _read_entry(data: bytes, position: int, faults: list[DirectoryFault]) -> tuple[Member, int]:
    """The entry at ``position`` and the position behind it. Raises FormatError saying only what is wrong."""
    name_start = position + _ENTRY.size
    if name_start > len(data):
        raise FormatError("is cut off")
    (_, system, flags, method, crc32, packed, size, name_size, extra_size, comment_size, disk, attributes, offset) = (
        _ENTRY.unpack_from(data, position)
    )
    name_end = name_start + name_size
    entry_end = name_end + extra_size + comment_size
    if entry_end > len(data):
        raise FormatError("is cut off")
    if disk not in (0, 0xFFFF):
        raise FormatError("claims to be on another disk")
    raw_name = data[name_start:name_end]
    try:
        name = raw_name.decode("utf-8" if flags & UTF8_FLAG or raw_name.isascii() else "cp437")
    except UnicodeDecodeError:
        name = raw_name.decode("utf-8", "replace")
        faults.append(DirectoryFault("name-encoding", f"the name {name!r} is marked as UTF-8 and is not", name))
    if extra_size or 0xFFFFFFFF in (size, packed, offset):
        extra = data[name_end : name_end + extra_size]
        size, packed, offset = widen(extra, size, packed, offset)
        other_name = _unicode_path(extra, raw_name)
        if other_name not in (None, raw_name):
            message = f"an extra field renames {name!r} to {other_name!r}; unpackers disagree about which to take"
            faults.append(DirectoryFault("name-differs", message, name))
    return Member(name, raw_name, method, flags, crc32, packed, size, offset, attributes, system), entry_end


def _impossible_size(member: Member) -> str:
    """What is wrong with the sizes of a member, "" when its data can have them."""
    if member.method == 0 and not member.is_encrypted and member.size != member.compressed_size:
        return f"{member.name!r} is stored as {member.compressed_size:,} bytes and claims {member.size:,}"
    if member.method == 8 and member.size > DEFLATE_LIMIT * member.compressed_size:
        return f"{member.name!r} claims {member.size:,} bytes, which {member.compressed_size:,} cannot inflate to"
    return ""


def _bad_entry(what: str, number: int, offset: int) -> FormatError:
    return FormatError(f"entry {number + 1} of the central directory, at byte {offset}, {what}", hint=REBUILD)


def _extra_fields(extra: bytes) -> Iterator[tuple[int, bytes]]:
    """The identifiers and contents of extra fields (4.5). Fewer than four bytes at the end are padding."""
    position = 0
    while position + 4 <= len(extra):
        identifier, length = struct.unpack_from("<HH", extra, position)
        if position + 4 + length > len(extra):
            raise FormatError(f"has an extra field ({identifier:#06x}) that runs over its end")
        yield identifier, extra[position + 4 : position + 4 + length]
        position += 4 + length


def widen(extra: bytes, *numbers: int) -> list[int]:
    """``numbers`` with those that are 0xFFFFFFFF replaced, in order, from the zip64 extra field (4.5.3).

    Raises FormatError when an extra field is malformed or has no value for one of them.
    """
    fields = dict(reversed(list(_extra_fields(extra))))  # of two alike the first counts, as in zipfile
    if 0xFFFFFFFF not in numbers:
        return list(numbers)
    content = fields.get(_ZIP64_EXTRA, b"")
    values = iter(struct.unpack_from(f"<{len(content) // 8}Q", content))
    try:
        return [next(values) if number == 0xFFFFFFFF else number for number in numbers]
    except StopIteration:
        raise FormatError("needs a zip64 extra field that is missing or too short") from None


def _unicode_path(extra: bytes, raw_name: bytes) -> bytes | None:
    """The name that an Info-ZIP Unicode path field (4.6.9) puts in place of ``raw_name``, if it is there and valid."""
    content = dict(_extra_fields(extra)).get(_UNICODE_PATH_EXTRA, b"")
    if len(content) < 5 or content[0] != 1 or int.from_bytes(content[1:5], "little") != zlib.crc32(raw_name):
        return None
    return content[5:]


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


def overlaps(members: Iterable[Member], directory_offset: int) -> list[tuple[Member, Member | None]]:
    """Pairs of members whose local header and data share bytes; None stands for the central directory.

    Each member is reported at most once as the later of two and once against the directory. The extra fields of local
    headers are not counted, as they are not known here. Takes O(n log n).
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
