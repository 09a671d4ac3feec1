"""A source that holds what was read of it, so that a second reader of the same members asks for no byte again."""

from collections.abc import Iterator, Sequence

from wheel_checks.formats.elf.bytes import KnownRegions, merge
from wheel_checks.sources.byte_source import ByteSource, Cost


class HeldBytes:
    """``source``, with all of its bytes that were read, up to ``end``, in memory. Streams are not held."""

    def __init__(self, source: ByteSource, end: int) -> None:
        self._source = source
        self._known = KnownRegions(end)

    @property
    def location(self) -> str:
        """That of the source."""
        return self._source.location

    @property
    def remote(self) -> bool:
        """That of the source."""
        return self._source.remote

    @property
    def cost(self) -> Cost:
        """That of the source."""
        return self._source.cost

    def read_tail(self, length: int) -> tuple[int, bytes]:
        """The source's own."""
        return self._source.read_tail(length)

    def read(self, offset: int, length: int) -> bytes:
        """These bytes. Raises SourceError."""
        return self.read_many([(offset, length)])[0]

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each ``(offset, length)``, of which those that are not held are read. Raises SourceError."""
        wanted = merge(gap for span in ranges for gap in self._known.gaps(*span))
        for gap, data in zip(wanted, self._source.read_many(wanted), strict=True):
            self._known.add(gap.offset, data)
        return [self._known.read(*span) for span in ranges]

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """The source's own."""
        return self._source.stream(offset, length)

    def close(self) -> None:
        """Nothing: the source belongs to the caller."""
