"""The data descriptor after a member's data (PKWARE APPNOTE 6.3.10, 4.3.9)."""

import struct
from dataclasses import dataclass

SIGNATURE = b"PK\7\x08"
LONGEST = 24
"""Bytes of a descriptor of zip64 with its signature."""

_PLAIN, _WIDE = struct.Struct("<III"), struct.Struct("<IQQ")


@dataclass(frozen=True, slots=True)
class DataDescriptor:
    """Checksum and sizes of a member; ``length`` is that of the descriptor, all in bytes."""

    crc32: int
    compressed_size: int
    size: int
    length: int


def read_descriptor(data: bytes, *, zip64: bool) -> DataDescriptor | None:
    """The descriptor at the beginning of ``data``, None where that ends within it. The signature may be omitted."""
    start = len(SIGNATURE) if data.startswith(SIGNATURE) else 0
    form = _WIDE if zip64 else _PLAIN
    if len(data) < start + form.size:
        return None
    crc32, compressed_size, size = form.unpack_from(data, start)
    return DataDescriptor(crc32, compressed_size, size, start + form.size)
