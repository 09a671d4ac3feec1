"""Reads the ELF files of one wheel at the lowest cost: small ones whole, big ones by their heads and tails.

The cost depends on the offsets of an ELF file's parts. The program headers are in its first bytes; they locate the
dynamic section, which locates the rest. Linkers put the names and the version needs in front, patchelf moves the names
to the end; the dynamic section is before the data, near the end of most libraries and in the middle of some. A deflated
member is read from its start as far as that is cheap, its tail by :mod:`wheel_checks.formats.zip.deflate_tail`.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.dynamic_strings import names_at, place_of_strings
from wheel_checks.facts.elf.far_names import learn_near_names, read_far_names
from wheel_checks.facts.elf.member import PartialMember
from wheel_checks.facts.elf.member_elf import NOT_SOUGHT, MemberElf, ReadMode
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, StreamKeeper, WholeFile, merge
from wheel_checks.formats.elf.file import LOADER_PARTS, ElfFacts, Missing, Part, read_elf, read_elf_by_ranges
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import DEFLATED, STORED, inflate, inflate_stream
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

WHOLE = 96 * 1024  # compressed bytes up to which a member is read whole: head and tail would not be less
_WHOLE_INFLATED = 8 * 1024 * 1024  # bytes
FIRST_HEAD = 8 * 1024  # compressed bytes: the program headers, and all names of small libraries
EXTRA_ROOM = 128  # bytes for the extra fields of a local header; when they take more, the first read is a bit shorter
_AT_ONCE = 12  # members read together
_MAX_ROUNDS = 24
_MAX_STREAMS = 6  # of one member: bytes found may refer to earlier ones
_DEEP = 6 * 1024 * 1024  # compressed bytes of a tail that is read if a stream would be much longer
_MUCH_SHORTER = 2  # times, by an estimate that is too long if names, which inflate most, follow denser data
_DEEP_INFLATED = 32 * 1024 * 1024  # bytes of it, held four times; of one member at a time


@dataclass(frozen=True, slots=True)
class Effort:
    """How many compressed bytes of the head and tail of one member may be read.

    ``parts`` for the facts themselves; ``names``, when these are out of reach, for the possible names; and ``place``
    while the offset of these is unknown: section headers that a tail of some size leaves uncertain are copied from far
    before, and a longer one seldom helps.
    """

    parts: int
    names: int
    place: int


THOROUGH = Effort(384 * 1024, 1280 * 1024, 1280 * 1024)  # for the wheel that is judged; .dynstr takes up to 1 MiB
FAR = Effort(4 * 1024 * 1024, 1280 * 1024, 1280 * 1024)  # for a member that decides, before it is streamed
PASSING = Effort(64 * 1024, 64 * 1024, 64 * 1024)  # for facts that other members may give
THRIFTY = Effort(192 * 1024, 512 * 1024, 160 * 1024)  # for the thirty wheels that it requires


def read_member_elfs(
    source: ByteSource,
    archive: Archive,
    members: Sequence[Member],
    parts: Collection[Part] = LOADER_PARTS,
    *,
    effort: Effort = THOROUGH,
    stream: int = 0,
    stream_names: int = 0,
) -> list[MemberElf]:
    """The ``parts`` of the ELF facts of each of ``members``, in order; the next ranges of all are requested together.

    Of a big deflated member only head and tail are read, as far as ``effort`` allows. When these do not suffice, a
    member of at most ``stream`` compressed bytes is streamed until all parts are known; of others the rest stays
    missing, and possible names are searched for, streaming at most about ``stream_names`` compressed bytes, or reading
    a much shorter tail. Memory is bounded: 12 members at a time, at most 12 MiB of head and of tail each. Raises
    SourceError.
    """
    results: list[MemberElf] = []
    for first in range(0, len(members), _AT_ONCE):
        batch = [_Reading(member, parts, effort) for member in members[first : first + _AT_ONCE]]
        _begin(source, batch, archive.end.directory_offset)
        _read_on(source, batch)
        _find_far_names(source, batch)
        for reading in batch:
            for _ in range(_MAX_STREAMS):
                if reading.wants_more and reading.member.compressed_size <= stream:
                    reading.stream(source)
                    _read_on(source, [reading])
        for reading in batch:
            reading.seek_names()
        _read_on(source, batch)
        for reading in batch if stream_names else ():
            _read_far(source, reading, stream_names)
        results += [reading.result() for reading in batch]
    return results


def _begin(source: ByteSource, batch: Sequence[_Reading], directory_offset: int) -> None:
    """Read the local header of each member with the first of its data, or with all of it."""
    ranges = []
    for reading in batch:
        member = reading.member
        body = member.compressed_size if reading.is_small else min(FIRST_HEAD, member.compressed_size)
        length = LOCAL_HEADER_SIZE + len(member.raw_name) + EXTRA_ROOM + body
        ranges.append((member.header_offset, max(0, min(length, directory_offset - member.header_offset))))
    pieces = iter(source.read_many([span for span in ranges if span[1]]))
    for reading, (_, length) in zip(batch, ranges, strict=True):
        reading.begin(source, next(pieces) if length else b"", directory_offset)


def _read_on(source: ByteSource, batch: Sequence[_Reading]) -> None:
    """Read more of the heads and tails, one request round for all, until nothing is needed or allowed."""
    for _ in range(_MAX_ROUNDS):
        wanted = [(reading, reading.next_ranges()) for reading in batch]
        pieces = iter(source.read_many([span for _, ranges in wanted for span in ranges if span[1]]))
        for reading, ranges in wanted:
            if ranges:
                head, tail = (next(pieces) if length else b"" for _, length in ranges)
                reading.take(head, tail)
        if not any(ranges for _, ranges in wanted):
            break


def _read_far(source: ByteSource, reading: _Reading, most: int) -> None:
    """Read the needed bytes of one member by a long tail, or by a stream of about ``most`` compressed bytes."""
    for _ in range(_MAX_STREAMS):
        if not reading.wants_more:
            return
        if not reading.goes_deep():
            if reading.packed_until_needed > most:
                return
            reading.stream(source)
        _read_on(source, [reading])


def _find_far_names(source: ByteSource, batch: Sequence[_Reading]) -> None:
    """Seek the names of sections that neither head nor tail reaches."""
    open_ = [(reading, reading.partial) for reading in batch if reading.partial and reading.lacks(Part.SECTIONS)]
    for (reading, _), read in zip(open_, read_far_names(source, [partial for _, partial in open_]), strict=True):
        reading.note(read)


class _Reading:
    """The reading of one member, round by round."""

    def __init__(self, member: Member, parts: Collection[Part], effort: Effort) -> None:
        self.member = member
        self._parts = parts
        self._effort = effort
        self._deep = 0
        self._allowed = effort.parts
        self._facts: ElfFacts | Unavailable = Unavailable(f"{member.name} was not read")
        self._mode = ReadMode.WHOLE
        self._bytes_read = 0
        self.partial: PartialMember | None = None  # only while more may be read
        self._needed: tuple[ByteRange, ...] = ()
        self._doubt = ""
        self._seeks_names = False
        self._names: tuple[str, ...] | Unavailable = NOT_SOUGHT

    @property
    def is_small(self) -> bool:
        """True when the member is to be read whole."""
        return (
            self.member.method == DEFLATED
            and self.member.compressed_size <= WHOLE
            and self.member.size <= _WHOLE_INFLATED
        )

    @property
    def wants_more(self) -> bool:
        """True when parts are missing that head and tail did not say."""
        return bool(self.partial and self._needed)

    @property
    def packed_until_needed(self) -> int:
        """About how many compressed bytes of the member precede the end of the needed ones."""
        end = max((span.end for span in self._wanted), default=0)
        return end * self.member.compressed_size // max(1, self.member.size)

    @property
    def _wanted(self) -> tuple[ByteRange, ...]:
        """The ranges needed now, and those of the sections, which pass by when the member is streamed."""
        sections = None if isinstance(self._facts, Unavailable) else self._facts.sections
        return merge([*self._needed, *(sections.ranges if isinstance(sections, Missing) else ())])

    def lacks(self, part: Part) -> bool:
        """True when this part was requested and is unknown."""
        return not isinstance(self._facts, Unavailable) and part in self._facts.missing

    def note(self, bytes_read: int) -> None:
        """Look again after so many bytes were read for :attr:`partial`."""
        self._bytes_read += bytes_read
        try:
            self._look()
        except FormatError as error:
            self._fail(error)

    def result(self) -> MemberElf:
        """The facts known by now."""
        if self._seeks_names and self.partial and not isinstance(self._facts, Unavailable):
            self._seeks_names = False
            self.note(0)  # looking for the names, more was read
        if self._doubt and self._needed:
            self._facts = Unavailable(f"{self._doubt} as its tail reads", "streaming the member would settle it")
        return MemberElf(self.member, self._facts, self._mode, self._bytes_read, self._names)

    def begin(self, source: ByteSource, data: bytes, directory_offset: int) -> None:
        """Take the local header and the data after it."""
        member = self.member
        self._bytes_read = len(data)
        try:
            header = read_local_header(data)
            start = member.header_offset + header.header_size
            if start + member.compressed_size > directory_offset:
                raise FormatError(f"{member.name!r} reaches into the central directory")  # noqa: TRY301  # one handler for all that is wrong with a member
            body = data[header.header_size : header.header_size + member.compressed_size]
            if member.method == STORED and not member.is_encrypted and member.size == member.compressed_size:
                self._read_stored(source, start)
            elif len(body) == member.compressed_size or member.method != DEFLATED or member.is_encrypted:
                self._facts = read_elf(WholeFile(inflate(member, body, _WHOLE_INFLATED)), self._parts)
            else:
                self.partial = PartialMember(member, start)
                self._mode = ReadMode.HEAD
                self.partial.begin(body)
                self._look()
        except FormatError as error:
            self._fail(error)

    def next_ranges(self) -> list[tuple[int, int]]:
        """The ``(offset, length)`` in the archive to add to the head and to the tail; none when that is enough."""
        partial = self.partial
        if partial is None or not self._needed:
            return []
        allowed = max(self._allowed, self._deep, self._effort.place if self.lacks(Part.SECTIONS) else 0)
        wish = partial.wish_for(self._needed)
        if wish.head + wish.tail > allowed:  # so that unreachable ranges do not keep us from the others
            in_reach = [span for span in self._needed if sum(partial.wish_for([span])) <= allowed]
            wish = partial.wish_for(in_reach)
            if not in_reach or wish.head + wish.tail > allowed:
                return []
        end = partial.data_offset + self.member.compressed_size
        return [
            (partial.data_offset + partial.head_packed, wish.head - partial.head_packed),
            (end - wish.tail, wish.tail - len(partial.tail_packed)),
        ]

    def take(self, head: bytes, tail: bytes) -> None:
        """Take the bytes read for :meth:`next_ranges`."""
        if self.partial is None:
            return
        self._bytes_read += len(head) + len(tail)
        try:
            if head:
                self.partial.extend_head(head)
            if tail:
                self.partial.extend_tail(tail)
            self._look()
        except FormatError as error:
            self._fail(error)

    def stream(self, source: ByteSource) -> None:
        """Stream the member until the ranges have passed that are needed, in bounded memory."""
        partial = self.partial
        if partial is None:
            return
        self._mode = ReadMode.STREAMED
        wanted = self._wanted
        keeper = StreamKeeper(self.member.size, wanted)

        def counted(chunks: Iterable[bytes]) -> Iterator[bytes]:
            for chunk in chunks:
                self._bytes_read += len(chunk)
                yield chunk

        chunks = source.stream(partial.data_offset, self.member.compressed_size)
        try:
            for piece in inflate_stream(self.member, counted(chunks)):
                keeper.feed(piece)
                if keeper.done:
                    break
            for span in wanted:
                partial.learned.add(span.offset, keeper.regions.read(*span))
            self._look()
        except FormatError as error:
            self._fail(error)
        finally:
            if isinstance(chunks, Generator):
                chunks.close()  # now, not at some later time: a connection hangs on it

    def seek_names(self) -> None:
        """From now on look for names that are possible, if the dynamic section is wanted and missing."""
        if self.partial is None or self._doubt or Part.DYNAMIC not in self._parts:
            return
        self._seeks_names = True
        self._names = Unavailable("the strings of .dynstr would take too many bytes", "allow more effort, or streaming")
        try:
            self._look()
        except FormatError as error:
            self._fail(error)

    def goes_deep(self) -> bool:
        """True when a long tail is to be read: once, if it is much shorter than the stream would be."""
        if self.partial is None or self._deep or not self._needed:
            return False
        start = min(span.offset for span in self._needed)
        if self.partial.tail_until(start) > self.packed_until_needed // _MUCH_SHORTER:
            return False
        self._deep = _DEEP
        self.partial.allow_inflating(_DEEP_INFLATED)
        return True

    def _look(self) -> None:
        """Read the facts that the bytes available show, and record the missing ranges."""
        partial = self.partial
        if partial is None:
            return
        try:
            if self._seeks_names:
                self._allowed = self._effort.place
                place = place_of_strings(partial)
                self._allowed = self._effort.names
                self._names, self._needed = names_at(partial, place), ()
                if self.lacks(Part.SECTIONS):  # other missing parts are covered by the names
                    self._facts = read_elf(partial, self._parts)
                    self._needed = self._facts.sections.ranges if isinstance(self._facts.sections, Missing) else ()
            else:
                if Part.SECTIONS in self._parts:
                    learn_near_names(partial)
                self._facts = read_elf(partial, self._parts)
                self._needed = self._facts.needed_ranges
        except BytesNeeded as needed:
            self._needed = needed.ranges
        except FormatError as error:
            if not partial.tail_served or not partial.trust_tail:
                raise
            partial.trust_tail = False  # perhaps the tail was inflated from a wrong start
            self._doubt = f"{self.member.name} cannot be read as an ELF file: {error},"
            self._look()
            return
        if self._mode is ReadMode.HEAD and partial.tail_served and partial.trust_tail:
            self._mode = ReadMode.TAIL
        if not self._needed:
            self.partial = None

    def _read_stored(self, source: ByteSource, start: int) -> None:
        def read_many(ranges: Sequence[tuple[int, int]]) -> list[bytes]:
            self._bytes_read += sum(length for _, length in ranges)
            return source.read_many([(start + offset, length) for offset, length in ranges])

        self._mode = ReadMode.RANGES
        self._facts = read_elf_by_ranges(self.member.size, read_many, self._parts)

    def _fail(self, error: FormatError) -> None:
        self._facts = Unavailable(f"{self.member.name} cannot be read as an ELF file: {error}")
        self.partial, self._needed = None, ()
