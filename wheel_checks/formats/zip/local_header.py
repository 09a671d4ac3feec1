"""The local header in front of each member of a zip archive (PKWARE APPNOTE 6.3.10, 4.3.7)."""

import struct
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.extra_fields import widen

_HEADER = struct.Struct("<4sBx2H4x3I2H")
_SIGNATURE = b"PK\3\4"
_FLAGS = (
    (0x1, "encryption flag"),
    (0x8, "flag of a data descriptor"),
    (0x20, "flag of patched data"),
    (0x40, "flag of strong encryption"),
    (0x800, "UTF-8 flag"),
)


@dataclass(frozen=True, slots=True)
class LocalHeader:
    """What the archive says about a member just before its data. ``header_size`` is where the data begins, in bytes.

    ``version`` of the format is what unpacking needs, in tenths; ``extra`` are the extra fields, as far as they were
    read; ``written_sizes`` are size and compressed size as they are in the fixed part.
    """

    name: bytes
    method: int
    flags: int
    crc32: int
    compressed_size: int
    size: int
    header_size: int
    version: int = 20
    extra: bytes = b""
    written_sizes: tuple[int, int] = (0, 0)

    @property
    def has_data_descriptor(self) -> bool:
        """True when checksum and sizes follow the data, so that here they may be 0 (bit 3 of the flags)."""
        return bool(self.flags & 0x8)


def read_local_header(data: bytes) -> LocalHeader:
    """The local header at the beginning of ``data``, which may end before the member's data or reach into it.

    Raises FormatError when it is malformed or when ``data`` ends within the part that matters: 30 bytes and the name,
    and the extra fields when a size is zip64's. ``30 + 2 * 65535`` bytes are always enough.
    """
    if not data.startswith(_SIGNATURE) or len(data) < LOCAL_HEADER_SIZE:
        raise FormatError(
            f"the central directory refers to a local header that is missing (found {data[:4]!r})",
            expected=f"{_SIGNATURE!r} and {LOCAL_HEADER_SIZE - 4} more bytes",
        )
    _, version, flags, method, crc32, packed, size, name_size, extra_size = _HEADER.unpack_from(data)
    header_size = LOCAL_HEADER_SIZE + name_size + extra_size
    needed = header_size if 0xFFFFFFFF in (packed, size) else LOCAL_HEADER_SIZE + name_size
    if len(data) < needed:
        raise FormatError(f"the local header is truncated after {len(data)} bytes", expected=f"{needed} bytes")
    name = data[LOCAL_HEADER_SIZE : LOCAL_HEADER_SIZE + name_size]
    extra = data[LOCAL_HEADER_SIZE + name_size : header_size]
    written = size, packed
    if needed == header_size:
        try:
            size, packed = widen(extra, size, packed)
        except FormatError as fault:
            raise FormatError(f"the local header of {name.decode('utf-8', 'replace')!r} {fault.what}") from None
    return LocalHeader(name, method, flags, crc32, packed, size, header_size, version, extra, written)


def disagreements(header: LocalHeader, member: Member) -> tuple[str, ...]:
    """What the local header says otherwise than the central directory: "method 0, the directory says 8".

    Where a data descriptor follows, checksum and sizes may be 0. Unpackers that stream trust the local header,
    others the directory: when the two differ, they unpack different files.
    """
    pairs: list[tuple[str, object, object]] = [("method", header.method, member.method)]
    if header.name != member.raw_name:
        names = (header.name.decode("utf-8", "replace"), member.raw_name.decode("utf-8", "replace"))
        pairs.insert(0, ("name", *(names if names[0] != names[1] else (header.name, member.raw_name))))
    meaning = _FLAGS if not member.raw_name.isascii() else _FLAGS[:-1]  # ASCII is the same in UTF-8
    pairs += [(what, int(bool(header.flags & bit)), int(bool(member.flags & bit))) for bit, what in meaning]
    sizes = [("compressed size", header.compressed_size, member.compressed_size), ("size", header.size, member.size)]
    follows = header.has_data_descriptor
    if not (follows and header.crc32 == 0):
        pairs.append(("CRC-32", f"{header.crc32:08x}", f"{member.crc32:08x}"))
    if not (follows and header.compressed_size == header.size == 0):
        pairs += sizes
    return tuple(f"{what} {here!r}, but the directory says {there!r}" for what, here, there in pairs if here != there)
