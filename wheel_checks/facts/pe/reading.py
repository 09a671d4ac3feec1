"""Reads what the libraries of Windows in a wheel need: the headers in front, the import tables by head or tail.

Linkers put the import tables at the end of .rdata or .idata: near the front of a library that is mostly GPU code, near
the end of all others. torch_cpu.dll (torch 2.11.0) has its imports in 2.4 of its 77 MB, tokenizers in 0.3 of 2.8.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.member import PartialMember
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, ElfBytes, KnownRegions, StreamKeeper, WholeFile
from wheel_checks.formats.pe.header import MAGIC, PeHeader, read_header
from wheel_checks.formats.pe.imports import read_imports
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import DEFLATED, STORED, inflate, inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

EFFORT = 4 * 1024 * 1024  # compressed bytes of the head and tail of one member
EFFORT_WITH_CODE = 512 * 1024  # of one whose sections show GPU code: only the versions of what it needs are of use
AT_ONCE = 12  # members read together

_WHOLE = 96 * 1024  # compressed bytes up to which a member is read whole
_WHOLE_INFLATED = 8 * 1024 * 1024  # bytes
_FIRST_HEAD = 8 * 1024  # compressed bytes: the headers
_EXTRA_ROOM = 128  # bytes for the extra fields of a local header
_MOST_HELD = 24 * 1024 * 1024  # bytes of an inflated head or tail; the tail of torch_cpu.dll has 12 million
_MAX_ROUNDS = 24
_MAX_STREAMS = 3  # of one member: names may be before the tables that lead to them
_MARGIN = 64 * 1024  # bytes kept around what is needed while a member is streamed: the names lie near the tables
_LIBRARY = (".dll", ".pyd", ".exe")


@dataclass(frozen=True, slots=True)
class MemberPe:
    """What is known of one member; ``bytes_read`` are compressed bytes of the archive.

    ``header`` is None for what is not a PE file at all, Unavailable for a corrupt one. ``imports`` are the names of
    DLLs that it needs at its start, and of those that it loads when it first calls them.
    """

    member: Member
    header: PeHeader | Unavailable | None
    imports: tuple[str, ...] | Unavailable
    bytes_read: int


def may_be_pe(member: Member) -> bool:
    """True for the libraries, Python modules and programs of Windows, by their names."""
    return member.name.lower().endswith(_LIBRARY) and not member.is_directory


def read_member_pes(
    source: ByteSource,
    archive: Archive,
    members: Sequence[Member],
    *,
    has_code: Callable[[PeHeader], bool] = lambda _: False,
    stream: int = 0,
) -> list[MemberPe]:
    """The headers and imports of each of ``members``, in order; what up to twelve need next is requested together.

    When ``EFFORT`` bytes of head and tail (``EFFORT_WITH_CODE`` for a member that ``has_code``) do not say the
    imports, a member is streamed up to these if that takes about ``stream`` compressed bytes at most.
    Raises SourceError when bytes cannot be had.
    """
    results: list[MemberPe] = []
    for first in range(0, len(members), AT_ONCE):
        batch = [_Reading(member, has_code) for member in members[first : first + AT_ONCE]]
        limit = archive.end.directory_offset
        spans = [reading.first_span(limit) for reading in batch]
        for reading, data in zip(batch, source.read_many(spans), strict=True):
            reading.begin(data, limit)
        for _ in range(_MAX_ROUNDS):
            wanted = [(reading, reading.next_ranges()) for reading in batch]
            pieces = iter(source.read_many([span for _, ranges in wanted for span in ranges]))
            for reading, ranges in wanted:
                reading.take([next(pieces) for _ in ranges])
            if not any(ranges for _, ranges in wanted):
                break
        for reading in batch:
            for _ in range(_MAX_STREAMS):
                if 0 < reading.packed_until_needed <= stream:
                    reading.stream(source)
        results += [reading.result() for reading in batch]
    return results


class _Reading:
    """The reading of one member, round by round."""

    def __init__(self, member: Member, has_code: Callable[[PeHeader], bool]) -> None:
        self.member = member
        self._has_code = has_code
        self._view: ElfBytes | None = None
        self._start = 0  # of the member's data in the archive
        self._needed: tuple[ByteRange, ...] = ()
        self._header: PeHeader | Unavailable | None = Unavailable(f"{member.name} was not read")
        self._imports: tuple[str, ...] | Unavailable = Unavailable("its imports were not read")
        self._bytes_read = 0

    @property
    def packed_until_needed(self) -> int:
        """About how many compressed bytes of the member there are up to what is needed; 0 when nothing is."""
        end = max((span.end for span in self._needed), default=0)
        return -(-end * self.member.compressed_size // max(1, self.member.size))

    def first_span(self, limit: int) -> tuple[int, int]:
        """The ``(offset, length)`` of the local header and the first of the data, or all of it, before ``limit``."""
        member = self.member
        body = member.compressed_size if member.compressed_size <= _WHOLE else _FIRST_HEAD
        length = LOCAL_HEADER_SIZE + len(member.raw_name) + _EXTRA_ROOM + body
        return member.header_offset, max(1, min(length, limit - member.header_offset))

    def begin(self, data: bytes, limit: int) -> None:
        """Take what was read of :meth:`first_span`."""
        member = self.member
        self._bytes_read = len(data)
        try:
            header = read_local_header(data)
            self._start = member.header_offset + header.header_size
            body = data[header.header_size : header.header_size + member.compressed_size]
            if self._start + member.compressed_size > limit:
                self._fail(FormatError(f"{member.name!r} reaches into the central directory"))
            elif len(body) == member.compressed_size or member.is_encrypted or member.method not in (STORED, DEFLATED):
                self._view = WholeFile(inflate(member, body, _WHOLE_INFLATED))
                self._look()
            elif member.method == STORED and member.size == member.compressed_size:
                known = KnownRegions(member.size)
                known.add(0, body)
                self._view = known
                self._look()
            else:
                partial = PartialMember(member, self._start)
                partial.allow_inflating(_MOST_HELD)
                partial.extend_head(body)
                self._view = partial
                self._look()
        except FormatError as error:
            self._fail(error)

    def next_ranges(self) -> list[tuple[int, int]]:
        """The ``(offset, length)`` in the archive to read next; none when that is enough, or too much."""
        if not self._needed:
            return []
        if isinstance(self._view, KnownRegions):
            return [(self._start + span.offset, span.length) for span in self._needed]
        if not isinstance(self._view, PartialMember):
            return []
        head, tail = self._wish(self._view)
        end = self._start + self.member.compressed_size
        spans = [
            (self._start + self._view.head_packed, head - self._view.head_packed),
            (end - tail, tail - len(self._view.tail_packed)),
        ]
        return [span for span in spans if span[1]]

    def _wish(self, view: PartialMember) -> tuple[int, int]:
        """How much of head and tail to know next: within the effort, what is known when that is of no use."""
        has_code = isinstance(self._header, PeHeader) and self._has_code(self._header)
        effort = EFFORT_WITH_CODE if has_code else EFFORT
        head, tail = view.wish_for(self._needed)
        if head > view.head_packed and head + tail > effort:
            return view.head_packed, len(view.tail_packed)
        return head, max(min(tail, effort - head), len(view.tail_packed))

    def take(self, pieces: Sequence[bytes]) -> None:
        """Take what was read of :meth:`next_ranges`."""
        if not pieces:
            return
        self._bytes_read += sum(map(len, pieces))
        try:
            if isinstance(self._view, KnownRegions):
                for span, data in zip(self._needed, pieces, strict=True):
                    self._view.add(span.offset, data)
            elif isinstance(self._view, PartialMember):
                parts = list(pieces)
                if self._wish(self._view)[0] > self._view.head_packed:
                    self._view.extend_head(parts.pop(0))
                if parts:
                    self._view.extend_tail(parts.pop())
            self._look()
        except FormatError as error:
            self._fail(error)

    def stream(self, source: ByteSource) -> None:
        """Stream the member until what is needed has passed, in bounded memory."""
        if not isinstance(self._view, PartialMember):
            return
        size = self.member.size
        around = [
            (max(0, s.offset - _MARGIN), min(size, s.end + _MARGIN) - max(0, s.offset - _MARGIN)) for s in self._needed
        ]
        keeper = StreamKeeper(size, around)

        def counted(chunks: Iterable[bytes]) -> Iterator[bytes]:
            for chunk in chunks:
                self._bytes_read += len(chunk)
                yield chunk

        chunks = source.stream(self._start, self.member.compressed_size)
        try:
            for piece in inflate_stream(self.member, counted(chunks)):
                keeper.feed(piece)
                if keeper.done:
                    break
            for offset, length in around:
                self._view.learned.add(offset, keeper.regions.read(offset, length))
            self._look()
        except FormatError as error:
            self._fail(error)
        finally:
            if isinstance(chunks, Generator):
                chunks.close()  # now, not at some later time: a connection hangs on it

    def result(self) -> MemberPe:
        """What is known by now."""
        if self._needed:
            size = f"{self.packed_until_needed / 1e6:.1f} MB"
            self._imports = Unavailable(
                f"the names of its imports are beyond its first {size} (--depth full reads up to --max-read)"
            )
        return MemberPe(self.member, self._header, self._imports, self._bytes_read)

    def _look(self) -> None:
        """Read what the bytes available show, and note what they lack."""
        view = self._view
        if view is None:
            return
        self._needed = ()
        try:
            if not isinstance(self._header, PeHeader):
                if view.read(0, min(len(MAGIC), view.size)) != MAGIC:
                    self._header = None
                    return
                self._header = read_header(view)
            self._imports = read_imports(view, self._header)
        except BytesNeeded as needed:
            self._needed = needed.ranges
        except FormatError:
            if not isinstance(view, PartialMember) or not view.tail_served or not view.trust_tail:
                raise
            view.trust_tail = False  # perhaps the tail was inflated from a wrong start
            self._look()

    def _fail(self, error: FormatError) -> None:
        reason = Unavailable(f"it cannot be read as a PE file: {error}")
        self._needed, self._imports = (), reason
        if not isinstance(self._header, PeHeader):
            self._header = reason
