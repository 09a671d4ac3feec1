"""What every source of a file's bytes offers, local or remote."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Cost:
    """What reading cost: bytes and requests over the wire (or bytes from disk), and bytes that the cache spared."""

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
        """What reading has cost so far."""

    def close(self) -> None:
        """Give back the file handle or connection."""


class NamedBytes(ByteSource, Protocol):
    """A source whose bytes have a name, so that what they say can be kept."""

    def fingerprint(self) -> str:
        """A name of these very bytes, so that what they say can be kept; "" when nothing names them.

        A server may be asked for a validator, and a local file is read whole.
        """
