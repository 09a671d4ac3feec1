"""The names that a library in an archive offers, as hashes: from the first kilobytes of most, else by its ends."""

from collections.abc import Callable
from typing import TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.member import PartialMember
from wheel_checks.facts.elf.reading import EXTRA_ROOM, FIRST_HEAD, Effort, read_member_elfs
from wheel_checks.formats.elf.file import Part
from wheel_checks.formats.elf.front import Front, find_exports, read_front
from wheel_checks.formats.elf.header import read_header
from wheel_checks.formats.elf.linkage import Exports
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import DEFLATED
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

_MOST_OF_HEAD = 4 << 20  # compressed bytes of a table that begins in the head
_MOST_INFLATED = 32 << 20  # fbgemm-gpu 1.6.0 has 17 MB of symbols in front of 1.1 GB
_ROUNDS = 6
T = TypeVar("T")

EFFORT = Effort(384 * 1024, 0, 0)


def read_member_exports(source: ByteSource, archive: Archive, member: Member) -> Exports | Unavailable:
    """The hashes of what ``member`` defines; why they could not be had. Raises SourceError."""
    found = _by_head(source, archive, member) if member.method == DEFLATED and not member.is_encrypted else None
    if found is not None:
        return found
    (elf,) = read_member_elfs(source, archive, [member], {Part.EXPORTS}, effort=EFFORT)
    if isinstance(elf.facts, Unavailable):
        return elf.facts
    if isinstance(elf.facts.exports, Exports):
        return elf.facts.exports
    if elf.facts.exports is None:
        return Exports(b"")
    return Unavailable(f"the symbol table of {member.name} lies too far inside it", "--depth full")


def _by_head(source: ByteSource, archive: Archive, member: Member) -> Exports | None:
    return _of_head(source, archive, member, find_exports)


def read_member_front(source: ByteSource, archive: Archive, member: Member) -> Front | None:
    """What ``member`` needs and defines, by its first bytes alone; None when these do not say. Raises SourceError."""
    if member.method != DEFLATED or member.is_encrypted:
        return None
    return _of_head(source, archive, member, read_front)


def _of_head(
    source: ByteSource, archive: Archive, member: Member, read: Callable[[bytes], tuple[T | None, int]]
) -> T | None:
    """What ``read`` makes of the first bytes of the member, None where these do not say."""
    wanted = min(FIRST_HEAD, member.compressed_size)
    for _ in range(_ROUNDS):
        head = _head(source, archive, member, wanted)
        found, more = read(head)
        if found is not None or not more or more > _MOST_INFLATED or wanted >= member.compressed_size:
            return found
        estimate = int(wanted * more / max(1, len(head)) * 1.1) + 4096
        wanted = min(member.compressed_size, max(estimate, 2 * wanted), _MOST_OF_HEAD)
    return None


def _head(source: ByteSource, archive: Archive, member: Member, packed: int) -> bytes:
    """The first bytes of the member, inflated from so many; none of what is no 64-bit little-endian ELF file."""
    length = LOCAL_HEADER_SIZE + len(member.raw_name) + EXTRA_ROOM + packed
    data = source.read(member.header_offset, min(length, archive.end.directory_offset - member.header_offset))
    try:
        start = read_local_header(data).header_size
        partial = PartialMember(member, member.header_offset + start)
        partial.allow_inflating(_MOST_INFLATED)
        partial.begin(data[start:])
        header, reader = read_header(partial)
    except FormatError:
        return b""  # whoever reads the whole member says what is wrong with it
    return partial.head(_MOST_INFLATED) if header.bits == 64 and reader.byte_order == "little" else b""
