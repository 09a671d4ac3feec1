"""The first bytes of members, inflated: enough to recognise native code without unpacking it."""

from collections.abc import Iterator, Sequence

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.sources.byte_source import ByteSource

_BATCH = 4096  # members that are held at once
_EXTRA = 64  # bytes of extra fields: those of real wheels are shorter


def read_heads(
    source: ByteSource, archive: Archive, members: Sequence[Member], packed: int, unpacked: int
) -> Iterator[tuple[Member, bytes]]:
    """Of each member up to ``unpacked`` bytes of what its first ``packed`` bytes inflate to, b"" where that fails.

    Raises SourceError when bytes cannot be had.
    """
    limit = archive.end.directory_offset
    for start in range(0, len(members), _BATCH):
        batch = members[start : start + _BATCH]
        spans = [_span(member, limit, packed) for member in batch]
        pieces = iter(source.read_many([span for span in spans if span[1]]))
        for member, (_, length) in zip(batch, spans, strict=True):
            yield member, _head(member, next(pieces) if length else b"", unpacked)


def _span(member: Member, limit: int, packed: int) -> tuple[int, int]:
    room = LOCAL_HEADER_SIZE + len(member.raw_name) + _EXTRA + packed
    return member.header_offset, max(0, min(room, limit - member.header_offset))


def _head(member: Member, data: bytes, unpacked: int) -> bytes:
    found = b""
    try:
        start = read_local_header(data).header_size
        for piece in inflate_stream(member, [data[start : start + member.compressed_size]]):
            found += piece
            if len(found) >= unpacked:
                break
    except FormatError:  # that the data end here, or more
        pass
    return found[:unpacked]
