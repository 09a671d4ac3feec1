"""Reads chosen members of an archive by their ranges, and compares each local header with the central directory."""

import bisect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive, ArchiveFault
from wheel_checks.facts.archive.map import header_faults
from wheel_checks.formats.zip.directory import Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

_HEADER_ROOM = 30 + 65_535 + 65_535  # the fixed part of a local header, the longest name, the longest extra field
_DESCRIPTOR = 24  # bytes of the longest data descriptor

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class MemberContents:
    """What was read: inflated bytes by member name, why others could not be read, and what was wrong on the way."""

    contents: dict[str, bytes | Unavailable]
    faults: tuple[ArchiveFault, ...]
    headers_read: int

    def parse(self, name: str, parser: Callable[[bytes], T]) -> T | Unavailable:
        """The parsed member, or why it cannot be had."""
        content = self.contents.get(name, Unavailable(f"the wheel has no {name}"))
        if isinstance(content, Unavailable):
            return content
        try:
            return parser(content)
        except FormatError as error:
            return Unavailable(f"{name} cannot be read: {error}")


def ranges_of(members: Sequence[Member], chosen: Iterable[Member], directory_offset: int) -> list[tuple[int, int]]:
    """The ``(offset, length)`` in bytes that holds each chosen member with its local header.

    The length of a local header is known only once it is read, so the range reaches to the next member, or to the
    directory; a lying directory cannot make it longer than the longest header and the compressed size.
    """
    starts = sorted({member.header_offset for member in members} | {directory_offset})
    ranges = []
    for member in chosen:
        following = bisect.bisect_right(starts, member.header_offset)
        end = starts[following] if following < len(starts) else directory_offset
        longest = _HEADER_ROOM + member.compressed_size + _DESCRIPTOR
        ranges.append((member.header_offset, max(0, min(end - member.header_offset, longest))))
    return ranges


def read_members(source: ByteSource, archive: Archive, limits: Mapping[str, int]) -> MemberContents:
    """Read those members that exist of which ``limits`` gives the name, and the most bytes that it may have.

    The last entry counts when a name occurs twice, as for installers.
    """
    by_name = {member.name: member for member in archive.members}
    chosen = [by_name[name] for name in limits if name in by_name]
    contents: dict[str, bytes | Unavailable] = {}
    faults: list[ArchiveFault] = []
    for member in [member for member in chosen if max(member.compressed_size, member.size) > limits[member.name]]:
        claimed = max(member.compressed_size, member.size)
        sentence = f"{member.name!r} claims {claimed:,} bytes; at most {limits[member.name]:,} are read"
        if member.header_offset + member.compressed_size > archive.end.directory_offset:
            faults.append(ArchiveFault("content", sentence, member.name))
        contents[member.name] = Unavailable(sentence)
        chosen.remove(member)
    ranges = ranges_of(archive.members, chosen, archive.end.directory_offset)
    # A directory that lies may place a member behind itself, even after the end of the file: nothing to read there.
    held = iter(source.read_many([span for span in ranges if span[1]]))
    for member, (_, length) in zip(chosen, ranges, strict=True):
        data = next(held) if length else b""
        try:
            header = read_local_header(data)
            faults += header_faults(member, header)
            body = data[header.header_size : header.header_size + member.compressed_size]
            contents[member.name] = inflate(member, body, limits[member.name])
        except FormatError as error:
            sentence = sentence_about(member, error)
            faults.append(ArchiveFault("content", sentence, member.name))
            contents[member.name] = Unavailable(sentence)
    return MemberContents(contents, tuple(faults), len(chosen))


def sentence_about(member: Member, error: FormatError) -> str:
    """The error with the name of the member, unless it names it already."""
    return str(error) if repr(member.name) in error.what else f"{member.name!r}: {error}"
