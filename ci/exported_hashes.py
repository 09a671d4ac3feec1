"""The hashes of the names that a library in a wheel exports, without its symbol table of megabytes.

The section headers at the end of the file have the place of .gnu.hash; a linker puts it at the start, patchelf at the
end. So a short tail and head suffice for most libraries; if the headers refer to bytes outside of the tail, the member
is streamed once.
"""

from __future__ import annotations

import struct
import sys
from array import array
from collections.abc import Generator

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.member import PartialMember
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, ElfBytes, KnownRegions, WholeFile
from wheel_checks.formats.elf.header import ElfHeader, read_header, table_sizes
from wheel_checks.formats.elf.reader import Reader, check_count
from wheel_checks.formats.elf.sections import read_kind_and_link, read_place
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import DEFLATED, inflate, inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

LARGEST_HASH_TABLE = 16 * 1024 * 1024  # bytes of .gnu.hash; 1 MB in the largest known library
_WHOLE = 256 * 1024  # compressed bytes up to which a member is read whole
_WHOLE_INFLATED = 16 * 1024 * 1024
_HEAD = 8 * 1024  # compressed bytes
_ROOM = 512  # bytes of a local header beyond its fixed part
_MOST = 6 * 1024 * 1024  # compressed bytes of head and tail, before the member is streamed
_KEPT = 32 * 1024 * 1024  # bytes of the end of a stream that are kept
_MAX_ROUNDS = 16
_SHT_GNU_HASH = 0x6FFFFFF6
_TABLE = struct.Struct("<4I")  # the head of .gnu.hash


def read_exported_hashes(
    source: ByteSource, archive: Archive, member: Member, *, stream: int = 0
) -> frozenset[int] | Unavailable:
    """The GNU hashes, lowest bits cleared, of the library's exports.

    A member of at most ``stream`` compressed bytes is streamed where its head and tail do not say. Raises SourceError.
    """
    start = member.header_offset
    body = member.compressed_size if member.compressed_size <= _WHOLE else _HEAD
    length = min(LOCAL_HEADER_SIZE + len(member.raw_name) + _ROOM + body, archive.end.directory_offset - start)
    try:
        data = source.read(start, max(0, length))
        header = read_local_header(data)
        packed = data[header.header_size : header.header_size + member.compressed_size]
        if len(packed) == member.compressed_size:
            return _hashes(WholeFile(inflate(member, packed, _WHOLE_INFLATED)))
        if member.method != DEFLATED or member.is_encrypted:
            return Unavailable(f"{member.name} is not deflated", "a wheel as pip and uv write it")
        partial = PartialMember(member, start + header.header_size)
        partial.allow_inflating(_KEPT)
        partial.begin(packed)
        found = _of_head_and_tail(source, partial)
        if found is None and member.compressed_size <= stream:
            found = _of_stream(source, partial)
    except FormatError as error:
        return Unavailable(f"the exports of {member.name} cannot be read: {error}")
    if found is None:
        return Unavailable(f"head and tail of {member.name} do not hold its exports", "stream it")
    return found


def _of_head_and_tail(source: ByteSource, partial: PartialMember) -> frozenset[int] | None:
    """The hashes, None when they take more than may be read."""
    end = partial.data_offset + partial.member.compressed_size
    for _ in range(_MAX_ROUNDS):
        try:
            return _hashes(partial)
        except BytesNeeded as needed:
            wish = partial.wish_for(needed.ranges)
        except FormatError:
            if partial.tail_served:  # perhaps the tail was inflated from a wrong start
                return None
            raise
        if wish.head + wish.tail > _MOST:
            return None
        head, tail = wish.head - partial.head_packed, wish.tail - len(partial.tail_packed)
        if head > 0:
            partial.extend_head(source.read(partial.data_offset + partial.head_packed, head))
        if tail > 0:
            partial.extend_tail(source.read(end - wish.tail, tail))
    return None


def _of_stream(source: ByteSource, partial: PartialMember) -> frozenset[int] | None:
    """The hashes from the first and the last bytes of the whole library, None when they lie between."""
    member = partial.member
    head, tail = bytearray(), bytearray()
    chunks = source.stream(partial.data_offset, member.compressed_size)
    try:
        for piece in inflate_stream(member, chunks):
            if len(head) < _KEPT:
                head += piece
            tail += piece
            if len(tail) > 2 * _KEPT:
                del tail[:-_KEPT]
    finally:
        if isinstance(chunks, Generator):
            chunks.close()  # now, not at some later time: a connection hangs on it
    known = KnownRegions(member.size)
    known.add(0, bytes(head))
    known.add(member.size - len(tail), bytes(tail))
    try:
        return _hashes(known)
    except BytesNeeded:
        return None


def _hashes(view: ElfBytes) -> frozenset[int]:
    """The hashes of .gnu.hash. Raises FormatError and BytesNeeded."""
    header, reader = read_header(view)
    if header.byte_order != "little":
        raise FormatError(f"it is {header.byte_order}-endian", expected="a library of x86_64 or aarch64")
    place = _find_hash_table(reader, header)
    if place is not None:
        check_count("sh_size of .gnu.hash", place[1], LARGEST_HASH_TABLE)
        return frozenset(exported_hashes(reader.read(*place, ".gnu.hash"), reader.bits))
    raise FormatError("it has no section .gnu.hash", expected="one, as linkers write it")


def _find_hash_table(reader: Reader, header: ElfHeader) -> tuple[int, int] | None:
    """sh_offset and sh_size of .gnu.hash, None when the file has none.

    Raises FormatError, and BytesNeeded for the types that are unknown where none is known to be it.
    """
    unknown: list[ByteRange] = []
    for number in range(1, table_sizes(reader, header).sections):
        try:
            kind, _ = read_kind_and_link(reader, header, number)
        except BytesNeeded as needed:
            unknown += needed.ranges
            continue
        if kind == _SHT_GNU_HASH:
            _, offset, size = read_place(reader, header, number)
            return offset, size
    if unknown:
        raise BytesNeeded(unknown)
    return None


def exported_hashes(section: bytes, bits: int) -> tuple[int, ...]:
    """The hashes of all names that a little-endian library of this class defines, from its section .gnu.hash.

    The lowest bit of each is cleared: it marks the end of a chain. Raises FormatError if the table contradicts its
    header; each hash must belong to its bucket, which excludes other bytes.
    """
    if len(section) < _TABLE.size:
        raise FormatError(f".gnu.hash has {len(section)} bytes", expected=f"at least {_TABLE.size}, its head")
    buckets, first, words, _ = _TABLE.unpack_from(section)
    start = _TABLE.size + words * bits // 8
    if len(section) % 4 or not buckets or start + 4 * buckets > len(section):
        raise FormatError(
            f".gnu.hash has {len(section):,} bytes, {words:,} Bloom words and {buckets:,} buckets",
            expected="buckets, and room for all counted in its header",
        )
    numbers = array("I", section[start : start + 4 * buckets])
    chains = array("I", section[start + 4 * buckets :])
    if sys.byteorder == "big":
        numbers.byteswap()
        chains.byteswap()
    ends = 0
    for bucket, number in enumerate(numbers):
        position = number - first
        while number:
            value = chains[position] if 0 <= position < len(chains) else None
            if value is None or bucket not in (value % buckets, (value ^ 1) % buckets):
                raise FormatError(
                    f"bucket {bucket} of .gnu.hash leads to none of its hashes",
                    expected="a chain of hashes with the remainder of their bucket",
                )
            ends += 1
            if value & 1:
                break
            position += 1
    if ends != len(chains):
        raise FormatError(f"{len(chains) - ends} hashes of .gnu.hash belong to no bucket", expected="none")
    return tuple(value & ~1 for value in chains)
