"""Reads a whole wheel once, front to back, and compares every byte with what is claimed for it: depth full."""

import base64
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive, ArchiveFault
from wheel_checks.facts.archive.inflation import absurd, absurd_together
from wheel_checks.facts.archive.map import SHOWN, boundaries, front_faults, limited, member_faults
from wheel_checks.facts.archive.members import sentence_about
from wheel_checks.formats.native_signature import HEAD, is_native_name, native_kind
from wheel_checks.formats.wheel.record import Record, RecordRow
from wheel_checks.formats.zip.directory import MOST_FAULTS, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource


@dataclass(frozen=True, slots=True)
class Content:
    """The sha256 of the whole file (hex), ``(member, sentence)`` for each content that differs from its RECORD row or
    checksum, and what is wrong with local headers and between members. ``disguised`` are ``(member, kind)`` of programs
    and libraries ("ELF", "PE", "Mach-O") whose names are those of something else.
    """

    sha256: str
    hash_faults: tuple[tuple[str, str], ...]
    faults: tuple[ArchiveFault, ...]
    headers_read: int
    disguised: tuple[tuple[str, str], ...] = ()


class _Stream:
    """Reads forward through chunks, hashing all that passes. Holds one chunk at a time."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._buffer = b""
        self._used = 0  # bytes of the buffer: cutting them off at every step would copy a chunk per member
        self.position = 0
        self.sha256 = hashlib.sha256()

    def take(self, length: int) -> Iterator[bytes]:
        """The next ``length`` bytes in pieces; fewer at the end of the file."""
        while length > 0:
            if self._used == len(self._buffer):
                self._buffer, self._used = next(self._chunks, b""), 0
                if not self._buffer:
                    return
                self.sha256.update(self._buffer)
            piece = self._buffer[self._used : self._used + length]
            self._used += len(piece)
            self.position += len(piece)
            length -= len(piece)
            yield piece

    def take_all(self, length: int) -> bytes:
        """The next ``length`` bytes at once."""
        return b"".join(self.take(length))

    def skip_to(self, offset: int) -> None:
        """Go forward to ``offset``."""
        for _ in self.take(offset - self.position):
            pass


class _Faults:
    """The first faults of contents, by member, and how many more there are."""

    def __init__(self) -> None:
        self._named: list[tuple[str, str]] = []
        self._more = 0

    def add(self, member: str, sentence: str) -> None:
        """Note a fault."""
        if len(self._named) < MOST_FAULTS:
            self._named.append((member, sentence))
        else:
            self._more += 1

    @property
    def found(self) -> tuple[tuple[str, str], ...]:
        """The faults, the last of them with the number of those that are not named."""
        more = [("", f"and {self._more:,} more members")] if self._more else []
        return (*self._named, *more)


def verify_content(source: ByteSource, size: int, archive: Archive, record: Record | Unavailable) -> Content:
    """Stream the file once in bounded memory. Members that begin within an earlier one are reported, not compared, nor
    are those that inflate absurdly unpacked: the work is bounded by the size of the file.
    """
    rows = {} if isinstance(record, Unavailable) else {row.path: row for row in record.rows}
    stream = _Stream(source.stream(0, size))
    hash_faults, disguised = _Faults(), _Faults()
    faults = front_faults(archive)
    ends = {id(member): end for member, end in boundaries(archive)}
    headers_read = 0
    left_out = {id(member) for member in (*absurd(archive.members), *absurd_together(archive.members))}
    for member in sorted(archive.members, key=lambda member: member.header_offset):
        if member.header_offset < stream.position:
            sentence = f"{member.name!r} starts within an earlier member: its content cannot be compared"
            hash_faults.add(member.name, sentence)
            continue
        if id(member) in left_out:
            hash_faults.add(
                member.name, f"{member.name!r} has an extreme compression ratio (WHL007): its content was not compared"
            )
            continue
        stream.skip_to(member.header_offset)
        try:
            fixed = stream.take_all(30)
            if len(fixed) < 30:
                raise FormatError(f"the file ends inside the local header of {member.name}")  # noqa: TRY301  # one handler for all that is wrong with a member
            variable = int.from_bytes(fixed[26:28], "little") + int.from_bytes(fixed[28:30], "little")
            header = read_local_header(fixed + stream.take_all(variable))
        except FormatError as error:
            hash_faults.add(member.name, sentence_about(member, error))
            continue
        headers_read += 1
        try:
            sentence, head = _compare(member, rows.get(member.name), stream)
            if sentence:
                hash_faults.add(member.name, sentence)
            if (kind := native_kind(head)) and not is_native_name(member.name):
                disguised.add(member.name, kind)
        except FormatError as error:
            hash_faults.add(member.name, sentence_about(member, error))
        stream.skip_to(member.header_offset + header.header_size + member.compressed_size)
        length = ends.get(id(member), stream.position) - stream.position
        faults += member_faults(member, header, stream.take_all(min(length, SHOWN)), length)
    stream.skip_to(size)
    return Content(stream.sha256.hexdigest(), hash_faults.found, limited(faults), headers_read, disguised.found)


def _compare(member: Member, row: RecordRow | None, stream: _Stream) -> tuple[str, bytes]:
    """How one member differs from RECORD ("" when it does not), and its first bytes. Inflating checks size and CRC."""
    digest = hashlib.new(row.algorithm) if row is not None and row.algorithm else None
    head = b""
    for chunk in inflate_stream(member, stream.take(member.compressed_size)):
        if len(head) < HEAD:
            head += chunk[: HEAD - len(head)]
        if digest:
            digest.update(chunk)
    if row is None or digest is None:
        return "", head
    actual = base64.urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
    if actual == row.digest:
        return "", head
    return f"{member.name!r} has {row.algorithm}={actual}, but RECORD says {row.digest}", head
