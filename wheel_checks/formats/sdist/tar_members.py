"""The members of a ``.tar.gz``, while it passes: names, sizes, and the bytes of a few small files. Nothing is unpacked.

Formats: ustar (POSIX.1-1988), pax (POSIX.1-2001), and the long names and large sizes of GNU tar. ``tarfile`` of the
standard library reads extension headers of any size into memory; here every piece that is held has a limit.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from wheel_checks.errors import FormatError

BLOCK = 512
MOST_MEMBERS = 200_000
LARGEST_TAR = 1 << 30
"""Bytes, unpacked. The largest source archives have 600 MB (tensorflow's, pyside's), in November 2026."""

_LONGEST_EXTENSION = 64 << 10  # bytes of a pax header or of a long name
_PIECE = 1 << 20  # bytes that are unpacked at once
_REGULAR, _WITHOUT_CONTENT = (b"0", b"7", b"\0"), (b"1", b"2", b"3", b"4", b"5", b"6")
_SPARSE = b"S"
_MORE_IN_HEADER, _MORE_IN_BLOCK = 482, 504  # offset of the flag for another block of a sparse file's map
_EXTENSIONS = (b"x", b"g", b"L", b"K")  # extension headers of pax and GNU, which describe the next member
_PAX = re.compile(rb"(\d{1,20}) ([^=]{1,200})=")


@dataclass(frozen=True, slots=True)
class TarMember:
    """A member: its name, its size in bytes, and its content when it was requested and is not too large."""

    name: str
    size: int
    content: bytes | None = None


def gunzip(chunks: Iterable[bytes], largest: int = LARGEST_TAR) -> Iterator[bytes]:
    """The unpacked bytes of a gzip file of one or more members, in pieces of at most 1 MiB.

    Raises FormatError when they do not unpack, or to more than ``largest`` bytes.
    """
    unpacker = zlib.decompressobj(wbits=31)
    total = 0
    for chunk in chunks:
        data = chunk
        while data:
            if unpacker.eof:
                data = data.lstrip(b"\0")  # padding after the last member
                if not data:
                    break
                unpacker = zlib.decompressobj(wbits=31)
            try:
                piece = unpacker.decompress(data, _PIECE)
            except zlib.error as error:
                raise FormatError(f"the archive does not unpack: {error}", expected="a .tar.gz file") from None
            data = unpacker.unused_data if unpacker.eof else unpacker.unconsumed_tail
            total += len(piece)
            if total > largest:
                raise FormatError(f"the archive unpacks to more than {largest:,} bytes")
            if piece:
                yield piece


def read_tar(chunks: Iterable[bytes], limit_of: Callable[[str], int]) -> Iterator[TarMember]:
    """The regular files of a tar file, in their order.

    ``limit_of`` gives the most bytes of a member's content that are wanted, 0 when only its name is needed. Ends at the
    end of ``chunks``. Raises FormatError if it is not a tar file.
    """
    stream = _Stream(iter(chunks))
    following = _Following()
    for _ in range(MOST_MEMBERS):
        header = stream.take(BLOCK)
        if len(header) < BLOCK or not header.strip(b"\0"):
            return
        _check_sum(header)
        kind, size = header[156:157], _number(header[124:136])
        if kind in _EXTENSIONS:
            following.add(kind, _extension(stream, size))
            continue
        if kind == _SPARSE:
            _skip_map(stream, header)
        name = following.name or _name(header)
        size = 0 if kind in _WITHOUT_CONTENT else size if following.size is None else following.size
        following = _Following()
        content = stream.take(size) if size <= (limit_of(name) if kind in _REGULAR else 0) else None
        if content is not None and len(content) < size:
            return
        stream.skip((size if content is None else 0) + -size % BLOCK)
        if kind in _REGULAR:
            yield TarMember(name, size, content)
    raise FormatError(f"the archive has more than {MOST_MEMBERS:,} members")


@dataclass(slots=True)
class _Following:
    """The fields that extension headers give for the member after them."""

    name: str = ""
    size: int | None = None

    def add(self, kind: bytes, data: bytes) -> None:
        if kind == b"L":
            self.name = _text(data.rstrip(b"\0"))
        elif kind == b"x":
            for key, value in _pax_records(data):
                if key == b"path":
                    self.name = _text(value)
                elif key == b"size" and value.isdigit():
                    self.size = int(value[:20])


def _skip_map(stream: _Stream, header: bytes) -> None:
    """Skip the blocks that continue the map of a sparse file (GNU tar); its data follow, without the holes."""
    more = header[_MORE_IN_HEADER]
    while more:
        block = stream.take(BLOCK)
        more = block[_MORE_IN_BLOCK] if len(block) == BLOCK else 0


def _extension(stream: _Stream, size: int) -> bytes:
    if size > _LONGEST_EXTENSION:
        raise FormatError(f"a header of {size:,} bytes", expected=f"at most {_LONGEST_EXTENSION:,}")
    data = stream.take(size)
    stream.skip(-size % BLOCK)
    return data


class _Stream:
    """Reads from chunks as from a file that cannot be sought."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._held = b""
        self._position = 0  # offset in the buffer: the rest is not copied for each header

    def take(self, length: int) -> bytes:
        """``length`` bytes, fewer at the end."""
        pieces = []
        while length > 0 and self._fill():
            piece = self._held[self._position : self._position + length]
            self._position += len(piece)
            pieces.append(piece)
            length -= len(piece)
        return b"".join(pieces)

    def skip(self, length: int) -> None:
        """Pass over ``length`` bytes."""
        while length > 0 and self._fill():
            step = min(length, len(self._held) - self._position)
            self._position += step
            length -= step

    def _fill(self) -> bool:
        while self._position >= len(self._held):
            chunk = next(self._chunks, None)
            if chunk is None:
                return False
            self._held, self._position = chunk, 0
        return True


def _check_sum(header: bytes) -> None:
    """Raise unless the header's checksum is right; old programs wrote a signed form of it."""
    stated = _number(header[148:156])
    blank = header[:148] + b" " * 8 + header[156:]
    total = sum(blank)
    if stated not in (total, total - 256 * sum(byte > 127 for byte in blank)):
        raise FormatError("the checksum of a tar header is wrong", expected="a tar file")


def _number(field: bytes) -> int:
    """An octal number, or GNU's base 256 with the first bit set."""
    if field[0] == 0x80:  # the mark of a positive number in base 256
        return int.from_bytes(field[1:], "big")
    text = field.strip(b" \0")
    if not text:
        return 0
    if not re.fullmatch(rb"[0-7]+", text):
        raise FormatError(f"a tar header has the number {field!r}", expected="octal digits")
    return int(text, 8)


def _name(header: bytes) -> str:
    name = header[:100].split(b"\0", 1)[0]
    is_posix = header[257:263] == b"ustar\0"
    prefix = header[345:500].split(b"\0", 1)[0] if is_posix else b""
    return _text(prefix + b"/" + name if prefix else name)


def _pax_records(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    position = 0
    while position < len(data) and (record := _PAX.match(data, position)):
        end = position + int(record[1])
        if end <= record.end() or end > len(data):
            raise FormatError("a record of a pax header has a wrong length")
        yield record[2], data[record.end() : end - 1]
        position = end


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")
