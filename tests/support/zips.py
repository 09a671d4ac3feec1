"""A zip writer that can lie: every field of every header can be overridden, which zipfile rightly does not allow."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wheel_checks.formats.zip.directory import DirectoryFault, EndRecord, Member, read_directory
from wheel_checks.formats.zip.end_record import find_end_record

STORED, DEFLATED = 0, 8
UTF8_FLAG, ENCRYPTED_FLAG = 0x800, 0x1
_ALL_ONES_32 = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class ZipEntry:
    """One member to write. Without overrides it is a correct one.

    ``local`` and ``directory`` override fields of the local header and of the directory entry: name (bytes), method,
    flags, crc32, compressed_size, size, header_offset, extra (bytes), version (in tenths). ``payload`` replaces the
    compressed bytes, ``descriptor`` are bytes after them, ``before`` bytes in front of the local header. ``mode`` is
    the Unix mode (0o120777 for a symbolic link). ``zip64`` writes the sizes and the offset as zip64 extra fields.
    """

    name: str | bytes
    data: bytes = b""
    method: int = DEFLATED
    flags: int = 0
    mode: int = 0o100644
    create_system: int = 3
    zip64: bool = False
    payload: bytes | None = None
    extra: bytes = b""
    descriptor: bytes = b""
    before: bytes = b""
    comment: bytes = b""
    local: Mapping[str, Any] = field(default_factory=dict)
    directory: Mapping[str, Any] = field(default_factory=dict)

    @property
    def raw_name(self) -> bytes:
        """The bytes of the name in the headers."""
        return self.name if isinstance(self.name, bytes) else self.name.encode()

    def compressed(self) -> bytes:
        """The member's bytes in the archive; methods other than deflate are not compressed."""
        if self.payload is not None:
            return self.payload
        if self.method != DEFLATED:
            return self.data
        compressor = zlib.compressobj(6, zlib.DEFLATED, -15)
        return compressor.compress(self.data) + compressor.flush()

    def fields(self, header_offset: int) -> dict[str, Any]:
        """What both headers say when nothing is overridden."""
        return {
            "name": self.raw_name,
            "method": self.method,
            "flags": self.flags | (0 if self.raw_name.isascii() or isinstance(self.name, bytes) else UTF8_FLAG),
            "crc32": zlib.crc32(self.data),
            "compressed_size": len(self.compressed()),
            "size": len(self.data),
            "header_offset": header_offset,
            "extra": self.extra,
            "version": 20,
        }


def described(name: str, data: bytes = b"", *, signature: bool = True, zip64: bool = False, **options: Any) -> ZipEntry:
    """A member whose CRC-32 and sizes follow its data in a descriptor, as writers to a pipe make it."""
    entry = ZipEntry(name, data, flags=0x8, **options)
    numbers = (zlib.crc32(data), len(entry.compressed()), len(data))
    after = b"PK\7\x08" * signature + struct.pack("<IQQ" if zip64 else "<III", *numbers)
    return replace(entry, descriptor=after, local={"crc32": 0, "compressed_size": 0, "size": 0, **entry.local})


def write_zip(
    entries: Iterable[ZipEntry],
    *,
    comment: bytes = b"",
    prefix: bytes = b"",
    suffix: bytes = b"",
    before_directory: bytes = b"",
    zip64: bool = False,
    end: Mapping[str, int] | None = None,
) -> bytes:
    """The archive's bytes.

    ``prefix`` and ``suffix`` are put around it without changing an offset, ``before_directory`` with it; ``zip64``
    writes the zip64 end record and locator; ``end`` overrides disk, entries, directory_size and directory_offset of the
    (zip64) end record.
    """
    body, directory, count = bytearray(), bytearray(), 0
    for entry in entries:
        body += entry.before
        fields = entry.fields(len(body))
        body += _local_header(entry, fields | dict(entry.local)) + entry.compressed() + entry.descriptor
        directory += _directory_entry(entry, fields | dict(entry.directory))
        count += 1
    body += before_directory
    told = {"disk": 0, "entries": count, "directory_size": len(directory), "directory_offset": len(body)}
    told |= end or {}
    return prefix + bytes(body + directory) + _end_records(told, len(body) + len(directory), zip64, comment) + suffix


def read_zip(data: bytes) -> tuple[EndRecord, tuple[Member, ...], tuple[DirectoryFault, ...]]:
    """The end record, members and faults of the archive ``data``, as the library under test reads them."""
    end = find_end_record(data, len(data))
    directory = data[end.directory_offset : end.directory_offset + end.directory_size]
    return end, *read_directory(directory, end)


def _local_header(entry: ZipEntry, f: dict[str, Any]) -> bytes:
    extra, sizes = bytes(f["extra"]), (f["compressed_size"], f["size"])
    if entry.zip64:
        extra += struct.pack("<HHQQ", 1, 16, f["size"], f["compressed_size"])
        sizes = (_ALL_ONES_32, _ALL_ONES_32)
    head = struct.pack(
        "<4s5H3I2H",
        b"PK\3\4",
        f["version"],
        f["flags"],
        f["method"],
        0,
        0x21,
        f["crc32"],
        *sizes,
        len(f["name"]),
        len(extra),
    )
    return head + bytes(f["name"]) + extra


def _directory_entry(entry: ZipEntry, f: dict[str, Any]) -> bytes:
    extra, numbers = bytes(f["extra"]), (f["compressed_size"], f["size"], f["header_offset"])
    if entry.zip64:
        extra += struct.pack("<HHQQQ", 1, 24, f["size"], f["compressed_size"], f["header_offset"])
        numbers = (_ALL_ONES_32, _ALL_ONES_32, _ALL_ONES_32)
    head = struct.pack(
        "<4sBB4H",
        b"PK\1\2",
        20,
        entry.create_system,
        f["version"],
        f["flags"],
        f["method"],
        0,
    )
    attributes = entry.mode << 16
    rest = struct.pack(
        "<H3I5H2I",
        0x21,
        f["crc32"],
        numbers[0],
        numbers[1],
        len(f["name"]),
        len(extra),
        len(entry.comment),
        0,
        0,
        attributes,
        numbers[2],
    )
    return head + rest + bytes(f["name"]) + extra + entry.comment


def _end_records(told: dict[str, int], position: int, zip64: bool, comment: bytes) -> bytes:
    disk, entries, size, offset = (told[k] for k in ("disk", "entries", "directory_size", "directory_offset"))
    records = b""
    if zip64:
        records = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 45, 45, disk, disk, entries, entries, size, offset)
        records += struct.pack("<4sIQI", b"PK\6\7", 0, position, 1)
        disk, entries, size, offset = 0xFFFF, 0xFFFF, _ALL_ONES_32, _ALL_ONES_32
    return (
        records + struct.pack("<4s4H2IH", b"PK\5\6", disk, disk, entries, entries, size, offset, len(comment)) + comment
    )
