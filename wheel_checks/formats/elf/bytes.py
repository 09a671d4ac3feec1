"""Where the bytes of an ELF file come from: all of them, or the regions known so far.

The readers ask for bytes at an offset. What is unknown raises :class:`BytesNeeded`, which says what to fetch next.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator
from mmap import mmap
from typing import NamedTuple, Protocol


class ByteRange(NamedTuple):
    """``length`` bytes at ``offset`` of the file."""

    offset: int
    length: int

    @property
    def end(self) -> int:
        """The offset after the last byte."""
        return self.offset + self.length


class BytesNeeded(Exception):  # noqa: N818  # not an error: it names what the caller has to fetch
    """Bytes are needed that are unknown. ``ranges`` are sorted, do not touch one another and are inside the file."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self.ranges = merge(ranges)
        super().__init__(", ".join(f"bytes {piece.offset} to {piece.end}" for piece in self.ranges))


class ElfBytes(Protocol):
    """The bytes of a file of ``size`` bytes, as far as they are known."""

    @property
    def size(self) -> int:
        """The size of the whole file in bytes."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes, which are inside the file. Raises BytesNeeded with what is unknown of them."""


def merge(ranges: Iterable[tuple[int, int]], gap: int = 0) -> tuple[ByteRange, ...]:
    """``ranges``, sorted, with those joined that overlap or have at most ``gap`` bytes between them."""
    merged: list[ByteRange] = []
    for offset, length in sorted(ranges):
        if merged and offset <= merged[-1].end + gap:
            start = merged[-1].offset
            merged[-1] = ByteRange(start, max(merged[-1].end, offset + length) - start)
        else:
            merged.append(ByteRange(offset, length))
    return tuple(merged)


class WholeFile:
    """A file that is there from end to end, as bytes or mapped into memory (then only what is read is loaded)."""

    def __init__(self, data: bytes | bytearray | memoryview | mmap) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes."""
        return bytes(self._data[offset : offset + length])


class _Piece(NamedTuple):
    offset: int
    data: memoryview

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class KnownRegions:
    """The regions of a file of ``size`` bytes that are known so far, such as a head, a tail and what was requested."""

    def __init__(self, size: int) -> None:
        self.size = size
        self._pieces: list[_Piece] = []  # sorted, not overlapping, none empty

    def add(self, offset: int, data: bytes) -> None:
        """Learn ``data`` at ``offset``; what is known already stays.

        Takes a time logarithmic in the number of regions, apart from moving a list. Raises ValueError for bytes
        outside the file.
        """
        end = offset + len(data)
        if offset < 0 or end > self.size:
            raise ValueError(f"bytes {offset} to {end} are outside a file of {self.size} bytes")
        new = memoryview(data)
        for gap in self.gaps(offset, len(data)):
            insort(self._pieces, _Piece(gap.offset, new[gap.offset - offset : gap.end - offset]), key=_offset)

    def read(self, offset: int, length: int) -> bytes:
        """Exactly these bytes. Raises BytesNeeded with what is unknown of them."""
        gaps = self.gaps(offset, length)
        if gaps:
            raise BytesNeeded(gaps)
        return b"".join(piece.data for piece in self._known(offset, offset + length))

    def gaps(self, offset: int, length: int) -> tuple[ByteRange, ...]:
        """What is unknown of these bytes."""
        gaps = []
        position = offset
        for piece in self._known(offset, offset + length):
            if piece.offset > position:
                gaps.append(ByteRange(position, piece.offset - position))
            position = piece.end
        if position < offset + length:
            gaps.append(ByteRange(position, offset + length - position))
        return tuple(gaps)

    def _known(self, start: int, end: int) -> Iterator[_Piece]:
        """The pieces, cut to what is between ``start`` and ``end``."""
        first = bisect_right(self._pieces, start, key=lambda piece: piece.end)
        for piece in self._pieces[first : bisect_left(self._pieces, end, key=_offset)]:
            cut = slice(max(start - piece.offset, 0), end - piece.offset)
            yield _Piece(max(start, piece.offset), piece.data[cut])


def _offset(piece: _Piece) -> int:
    return piece.offset


class StreamKeeper:
    """Takes a file of ``size`` bytes from its beginning in chunks of any size, and keeps chosen ranges of it.

    ``regions`` is what has been kept; feed on to an end, or until :attr:`position` is after what is wanted.
    """

    def __init__(self, size: int, ranges: Iterable[tuple[int, int]]) -> None:
        self.regions = KnownRegions(size)
        self.position = 0
        self._ranges = merge(ranges)

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the file. Raises ValueError when the file would grow beyond its size."""
        start, end = self.position, self.position + len(chunk)
        if end > self.regions.size:
            raise ValueError(f"the stream has more than the {self.regions.size} bytes of the file")
        first = bisect_right(self._ranges, start, key=lambda piece: piece.end)
        for piece in self._ranges[first:]:
            if piece.offset >= end:
                break
            kept = slice(max(piece.offset, start) - start, min(piece.end, end) - start)
            self.regions.add(start + kept.start, chunk[kept])
        self.position = end

    @property
    def done(self) -> bool:
        """True when every range is kept: the rest of the stream is of no use."""
        return not self._ranges or self.position >= self._ranges[-1].end
