"""The interface of every source of a file's bytes, local or remote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of reading: bytes and requests over the network (or bytes from disk), and bytes from the cache."""

    bytes_read: int = 0
    requests: int = 0
    bytes_cached: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.bytes_read + other.bytes_read, self.requests + other.requests, self.bytes_cached + other.bytes_cached
        )


class ByteSource(Protocol):
    """A file that can be read at any offset. Methods raise SourceError, or a subclass, when bytes cannot be had."""

    @property
    def location(self) -> str:
        """Path or URL for messages, credentials removed."""

    @property
    def remote(self) -> bool:
        """True when every byte costs a transfer."""

    def read_tail(self, length: int) -> tuple[int, bytes]:
        """The file's size, and its last ``min(length, size)`` bytes: the cheapest way to learn a remote file's size."""

    def read(self, offset: int, length: int) -> bytes:
        """Exactly ``length`` bytes at ``offset``; raises SourceError when the file ends before."""

    def read_many(self, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """The bytes of each ``(offset, length)``, in order. Remote sources fetch them at once, near ones together."""

    def stream(self, offset: int, length: int) -> Iterator[bytes]:
        """The bytes of one long range in chunks of at most 1 MiB, never held whole and not put in the cache."""

    @property
    def cost(self) -> Cost:
        """The cost of reading so far."""

    def close(self) -> None:
        """Give back the file handle or connection."""


class NamedBytes(ByteSource, Protocol):
    """A source whose bytes have a name, so that facts about them can be cached."""

    def fingerprint(self) -> str:
        """A name of these very bytes to cache facts, or ""; reads a local file whole, and may query a server."""
