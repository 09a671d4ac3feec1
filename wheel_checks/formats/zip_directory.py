"""The central directory of a zip archive (PKWARE APPNOTE 6.3.10), read from the end of the file."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class EndRecord:
    """Where the central directory lies: absolute offset and size in bytes, the number of entries, zip64 or not."""

    directory_offset: int
    directory_size: int
    entries: int
    zip64: bool
    comment_size: int


@dataclass(frozen=True, slots=True)
class Member:
    """One entry of the central directory. Sizes in bytes; ``header_offset`` is that of the local header."""

    name: str
    raw_name: bytes
    method: int
    flags: int
    crc32: int
    compressed_size: int
    size: int
    header_offset: int
    external_attributes: int
    create_system: int

    @property
    def is_directory(self) -> bool:
        """True for a folder entry, whose name ends with a slash."""
        return self.name.endswith("/")

    @property
    def is_encrypted(self) -> bool:
        """True when bit 0 of the general purpose flags is set."""
        return bool(self.flags & 0x1)

    @property
    def is_symlink(self) -> bool:
        """True when a Unix creator marked the member as a symbolic link."""
        return self.create_system == 3 and (self.external_attributes >> 28) == 0o12
