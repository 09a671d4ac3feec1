"""The data of a zip member: inflated within bounds, size and CRC-32 checked."""

import zlib
from collections.abc import Iterable, Iterator

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.directory import Member

STORED, DEFLATED = 0, 8
MAX_CHUNK = 1024 * 1024

# PKWARE APPNOTE 6.3.10, 4.4.5
_METHOD_NAMES = {
    1: "shrink",
    6: "implode",
    9: "deflate64",
    12: "bzip2",
    14: "LZMA",
    20: "old zstd",
    93: "zstd",
    95: "xz",
    96: "JPEG",
    97: "WavPack",
    98: "PPMd",
    99: "AES encryption",
}


def method_name(method: int) -> str:
    """The name of a compression method, for messages: "stored", "deflate", "bzip2", "method 77"."""
    return {STORED: "stored", DEFLATED: "deflate"}.get(method) or _METHOD_NAMES.get(method) or f"method {method}"


def inflate(member: Member, data: bytes, limit: int) -> bytes:
    """The contents of ``member`` from its compressed bytes ``data``.

    Raises FormatError when they are more than ``limit`` bytes, do not have the size and CRC-32 that the central
    directory gives, are encrypted, or are compressed by anything but deflate. Never holds more than ``limit`` bytes.
    """
    if member.size > limit:
        raise FormatError(f"{member.name!r} has {member.size} bytes", expected=f"at most {limit}")
    return b"".join(inflate_stream(member, (data,)))


def inflate_stream(member: Member, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The contents of ``member`` in pieces of at most 1 MiB, from ``chunks`` of its compressed bytes.

    Raises FormatError as :func:`inflate` does (without its limit), as soon as it can; the CRC-32 is checked last.
    """
    if member.is_encrypted:
        raise FormatError(f"{member.name!r} is encrypted", expected="a plain member", hint="installers cannot read it")
    if member.method not in (STORED, DEFLATED):
        raise FormatError(
            f"{member.name!r} is compressed by {method_name(member.method)}",
            expected="stored or deflate",
            hint="rebuild the wheel with deflate",
        )
    pieces = _split(chunks) if member.method == STORED else _inflate_pieces(member, chunks)
    size, crc32 = 0, 0
    for piece in pieces:
        size += len(piece)
        if size > member.size:
            raise FormatError(f"{member.name!r} is larger than it claims", expected=f"{member.size} bytes")
        crc32 = zlib.crc32(piece, crc32)
        yield piece
    if size != member.size:
        raise FormatError(f"{member.name!r} ends after {size} bytes", expected=f"{member.size} bytes")
    if crc32 != member.crc32:
        raise FormatError(f"{member.name!r} has CRC-32 {crc32:08x}", expected=f"{member.crc32:08x}")


def _split(chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        for start in range(0, len(chunk), MAX_CHUNK):
            yield chunk[start : start + MAX_CHUNK]


def _inflate_pieces(member: Member, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Raw deflate, one pull of at most 1 MiB at a time, so that a bomb costs no memory."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    for chunk in chunks:
        pending = chunk
        while pending or not inflater.eof:
            if inflater.eof:
                raise FormatError(f"{member.name!r} has bytes after the end of its deflate stream")
            try:
                piece = inflater.decompress(pending, MAX_CHUNK)
            except zlib.error as error:
                raise FormatError(f"{member.name!r} is not a valid deflate stream ({error})") from None
            pending = inflater.unconsumed_tail or inflater.unused_data
            if piece:
                yield piece
            if not pending and len(piece) < MAX_CHUNK:
                break
    if not inflater.eof:
        raise FormatError(f"{member.name!r} ends within its deflate stream", hint="the archive is truncated or damaged")
