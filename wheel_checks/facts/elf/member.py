"""One deflated member whose head and tail alone are read, as far as needed: what they show, what to read next."""

import zlib
from collections.abc import Iterable
from typing import NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, KnownRegions
from wheel_checks.formats.elf.header import read_header
from wheel_checks.formats.elf.sections import zeros_of_headers
from wheel_checks.formats.zip.deflate_tail import Tail, inflate_tail
from wheel_checks.formats.zip.directory import Member

MAX_INFLATED = 12 * 1024 * 1024  # bytes held of a head, and of a tail

_SHORTEST_TAIL, _FIRST_TAIL = 32 * 1024, 64 * 1024  # compressed bytes; a block of zlib's takes some 10 to 30 KB
_GROWTH = 1.4  # of a tail that does not say enough; 2 takes a few rounds less and a tenth more bytes
_SLACK = 16 * 1024  # compressed bytes before what is wanted, so that a block begins there
# The margin of inflate_tail guards against a deflate stream within the last stored block. An ELF file ends with its
# section headers, which no compressor stores; and garbage shows where PT_DYNAMIC says that the dynamic section is.
_MARGIN = 1024


class Wish(NamedTuple):
    """How many compressed bytes to know of the head and of the tail."""

    head: int
    tail: int


class PartialMember:
    """The bytes of a member (an ``ElfBytes``) that its head and its tail say for certain; all else is BytesNeeded.

    ``data_offset`` is where the compressed data begins in the archive. ``learned`` takes bytes known otherwise.
    ``tail_served`` says whether the tail gave any; ``trust_tail`` can be set to False when these made no sense.
    ``zeros`` are the ``(offset, length)`` of bytes that are known to be zero: copies of the same bytes are, too.
    """

    def __init__(self, member: Member, data_offset: int) -> None:
        self.member = member
        self.data_offset = data_offset
        self.head_packed = 0
        self.tail_packed = b""
        self.tail_served = False
        self.trust_tail = True
        self._most_inflated = MAX_INFLATED
        self.learned = KnownRegions(member.size)
        self._head = bytearray()
        self.zeros: list[tuple[int, int]] = []
        self._head_ended = False
        self._tail_ended = False
        self._inflater = zlib.decompressobj(-zlib.MAX_WBITS)
        self._tail: Tail | None = None

    @property
    def size(self) -> int:
        """The size of the member, inflated, in bytes."""
        return self.member.size

    def read(self, offset: int, length: int) -> bytes:
        """These bytes, from head or tail. Raises BytesNeeded when neither says all of them for certain."""
        if offset + length <= len(self._head):
            return bytes(self._head[offset : offset + length])
        if not self.learned.gaps(offset, length):
            return self.learned.read(offset, length)
        data = self._tail.certain(offset, length) if self._tail and self.trust_tail else None
        if data is None:
            raise BytesNeeded([(offset, length)])
        self.tail_served = True
        return data

    def head(self, most: int) -> bytes:
        """The first bytes of the member, as far as they are known, and at most so many."""
        return bytes(self._head[:most])

    def partly_known(self, offset: int, length: int) -> list[int | None]:
        """These bytes of the tail, None for those that are not certain; none when the tail does not reach to them."""
        if self._tail is None or offset < self._tail.offset or offset + length > self.size or not self.trust_tail:
            return []
        start = offset - self._tail.offset
        return self._tail.inflated.partly_known(start, start + length)

    def is_certain(self, offset: int, length: int) -> bool:  # noqa: ARG002  # the names are the protocol's
        """True: what is uncertain is not given."""
        return True

    def begin(self, packed: bytes) -> None:
        """Learn the first compressed bytes, and by the header in them what must be zero in the section headers.

        Raises FormatError for a broken stream, also for one that ends before the header does, and for what is not ELF.
        """
        self.extend_head(packed)
        try:
            header, _ = read_header(self)
        except BytesNeeded:
            raise FormatError(
                f"{self.member.name!r} has no complete ELF header in its first {len(packed):,} compressed bytes",
                expected="a valid deflate stream of a library",
            ) from None
        self.zeros = zeros_of_headers(header, self.member.size)

    def extend_head(self, packed: bytes) -> None:
        """Learn the compressed bytes that follow those of the head. Raises FormatError for a broken stream."""
        self.head_packed += len(packed)
        room = min(self._most_inflated, self.size) - len(self._head)
        if self._head_ended or room <= 0:
            return
        try:
            self._head += self._inflater.decompress(packed, room)
        except zlib.error as error:
            raise FormatError(f"{self.member.name!r} is not a valid deflate stream ({error})") from None
        self._head_ended = bool(self._inflater.unconsumed_tail) or self._inflater.eof

    def extend_tail(self, packed: bytes) -> None:
        """Learn the compressed bytes that precede those of the tail."""
        self.tail_packed = packed + self.tail_packed
        try:
            self._tail = inflate_tail(self.tail_packed, self.size, limit=self._most_inflated, margin=_MARGIN)
        except FormatError:  # no block begins in it, or it grew too long; a longer one or the head may serve
            self._tail_ended = self._tail is not None
            return
        for offset, length in self.zeros:
            if offset >= self._tail.offset:
                self._tail.learn(offset, bytes(length))

    @property
    def tail_start(self) -> tuple[int, int] | None:
        """Where the inflated tail begins: the byte of the compressed data, and that of the member."""
        if self._tail is None:
            return None
        behind = len(self._tail.inflated.compressed) - self._tail.inflated.start // 8
        return self.member.compressed_size - behind, self._tail.offset

    def wish_for(self, ranges: Iterable[ByteRange]) -> Wish:
        """What is likely to hold ``ranges``, each by whichever of head and tail needs fewer further bytes."""
        head, tail = self.head_packed, len(self.tail_packed)
        for wanted in ranges:
            by_head, by_tail = self._head_until(wanted.end), self._tail_from(wanted.offset)
            if not self.trust_tail or by_head - self.head_packed <= by_tail - len(self.tail_packed):
                head = max(head, by_head)
            else:
                tail = max(tail, by_tail)
        return Wish(head, tail)

    def allow_inflating(self, most: int) -> None:
        """From now on let head and tail take ``most`` bytes each."""
        self._most_inflated, self._tail_ended = most, False

    def tail_until(self, offset: int) -> int:
        """An estimate of the compressed bytes from ``offset`` to the end, by the density of the tail that is known."""
        if self._tail is None:
            return self.member.compressed_size
        density = len(self.tail_packed) / max(1, len(self._tail.data))
        return len(self.tail_packed) + int(max(0, self._tail.offset - offset) * density)

    def _head_until(self, end: int) -> int:
        """An estimate of the compressed bytes to ``end``, by the density of the head, always more than are known."""
        missing = (end - len(self._head)) * self.head_packed / max(1, len(self._head))
        return min(
            self.member.compressed_size, self.head_packed + max(int(missing * 1.2) + 4096, self.head_packed // 4)
        )

    def _tail_from(self, offset: int) -> int:
        """An estimate of the compressed bytes from ``offset`` on, always more than are known.

        The tails of libraries are much denser or much less dense than the whole, so the first one is a probe.
        """
        packed = len(self.tail_packed)
        if self._tail_ended:
            return self.member.compressed_size
        if not packed:
            estimate = (self.size - offset) * self.member.compressed_size / max(1, self.size) + _SLACK
            return min(self.member.compressed_size, max(_SHORTEST_TAIL, min(int(estimate), _FIRST_TAIL)))
        estimate = 0.0
        if self._tail is not None:
            density = packed / max(1, len(self._tail.data))
            estimate = packed + (self._tail.offset - offset) * density + _SLACK
        return min(self.member.compressed_size, max(min(int(estimate), 3 * packed), int(_GROWTH * packed)))
