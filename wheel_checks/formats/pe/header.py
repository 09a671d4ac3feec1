"""The headers of a PE file: machine, sections, and where the import tables are.

Source: Microsoft, PE Format (learn.microsoft.com/windows/win32/debug/pe-format), November 2026.
"""

import struct
from bisect import bisect_right
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import ElfBytes

MAGIC = b"MZ"
MACHINES = {0x014C: "x86", 0x8664: "x86_64", 0xAA64: "aarch64", 0x01C4: "arm", 0xA641: "ARM64EC", 0xA64E: "ARM64X"}

_DOS_HEADER = 64  # bytes
_OFFSET_OF_SIGNATURE = 0x3C
_FURTHEST_SIGNATURE = 64 * 1024  # bytes; it follows a small program for MS-DOS
_SIGNATURE = b"PE\0\0"
_COFF = struct.Struct("<HHIIIHH")
_PE32, _PE32_PLUS = 0x10B, 0x20B
_LARGEST_OPTIONAL = 1024  # bytes; 240 with all sixteen directories
_DIRECTORIES = {_PE32: 96, _PE32_PLUS: 112}  # where they begin in the optional header
_IMPORT, _DELAY_IMPORT = 1, 13  # numbers of directories
_SECTION = struct.Struct("<8sIIIIIIHHI")
_MOST_SECTIONS = 2_048  # old loaders take 96; onnxruntime for arm64 has 38
_SYMBOL_SIZE = 18  # bytes; the string table follows the symbols
_LONGEST_NAME = 256  # bytes of a section's name in the string table
_FILE_UNIT = 0x200  # bytes: the loader rounds the places of sections down to it


@dataclass(frozen=True, slots=True)
class Section:
    """One section: ``address`` relative to the image's base, ``offset`` and ``size`` in the file, in bytes.

    Linkers cut names to eight bytes (``.nv_fatb``), but for those that a string table holds.
    """

    name: str
    address: int
    offset: int
    size: int


@dataclass(frozen=True, slots=True)
class PeHeader:
    """What the headers say. ``imports`` and ``delay_imports`` are relative addresses, 0 for none.

    ``machine`` is a word of the field where it is known ("x86_64"), else a number. ``base`` is the preferred address.
    """

    machine: str
    base: int
    headers_size: int
    sections: tuple[Section, ...]
    imports: int
    delay_imports: int

    def place(self, address: int, field: str) -> tuple[int, int]:
        """Offset in the file of a relative address, and the bytes from there to the end of what holds it.

        Raises FormatError when no bytes of the file are loaded there.
        """
        if 0 < address < self.headers_size:
            return address, self.headers_size - address
        number = bisect_right(self.sections, address, key=_address) - 1
        if number >= 0:
            section = self.sections[number]
            inside = address - section.address
            if inside < section.size:
                return section.offset + inside, section.size - inside
        raise FormatError(f"{field} is at address {address:#x}", expected="an address inside a section of the file")


def read_bytes(view: ElfBytes, offset: int, length: int, field: str) -> bytes:
    """``length`` bytes at ``offset``. Raises FormatError when the file ends before, and BytesNeeded."""
    if offset + length > view.size:
        raise FormatError(
            f"{field} is at bytes {offset:#x} to {offset + length:#x}",
            expected=f"a place inside the file of {view.size:#x} bytes",
            hint="the PE file is cut off or damaged",
        )
    return view.read(offset, length)


def read_header(view: ElfBytes) -> PeHeader:
    """The headers, with the names of all sections.

    Raises FormatError, naming the field, for what is not a PE file or a corrupt one; BytesNeeded.
    """
    dos = read_bytes(view, 0, _DOS_HEADER, "the DOS header")
    if not dos.startswith(MAGIC):
        raise FormatError("the file does not start with MZ", expected="a PE file")
    (start,) = struct.unpack_from("<I", dos, _OFFSET_OF_SIGNATURE)
    if start > _FURTHEST_SIGNATURE:
        raise FormatError(f"e_lfanew is {start:#x}", expected=f"at most {_FURTHEST_SIGNATURE:#x}")
    coff = read_bytes(view, start, 4 + _COFF.size, "the COFF header")
    if not coff.startswith(_SIGNATURE):
        raise FormatError(
            f"bytes {start:#x} on are not the signature PE", expected="a Windows program, not a DOS program"
        )
    machine, count, _, symbols, symbol_count, optional_size, _ = _COFF.unpack_from(coff, 4)
    if count > _MOST_SECTIONS:
        raise FormatError(f"NumberOfSections is {count}", expected=f"at most {_MOST_SECTIONS}")
    if optional_size > _LARGEST_OPTIONAL:
        raise FormatError(f"SizeOfOptionalHeader is {optional_size}", expected=f"at most {_LARGEST_OPTIONAL}")
    optional_start = start + 4 + _COFF.size
    table_size = count * _SECTION.size
    headers = read_bytes(view, optional_start, optional_size + table_size, "the optional header and section table")
    optional, table = headers[:optional_size], headers[optional_size:]
    base, headers_size, directories = _optional_header(optional)
    strings = symbols + symbol_count * _SYMBOL_SIZE if symbols else 0
    sections = tuple(_section(view, row, strings) for row in _SECTION.iter_unpack(table))
    for one, other in pairwise(sections):
        if one.address >= other.address:
            raise FormatError(
                f"section {other.name} is at address {other.address:#x}", expected=f"an address after {one.name}"
            )
    return PeHeader(
        MACHINES.get(machine, f"{machine:#06x}"),
        base,
        min(headers_size, view.size),
        sections,
        directories[_IMPORT],
        directories[_DELAY_IMPORT],
    )


def _optional_header(data: bytes) -> tuple[int, int, list[int]]:
    """The image's base, the size of the headers, and the addresses of sixteen directories, 0 for missing ones."""
    magic = int.from_bytes(data[:2], "little")
    start = _DIRECTORIES.get(magic)
    if start is None or len(data) < start:
        raise FormatError(
            f"the optional header has the magic {magic:#x} and {len(data)} bytes", expected="PE32 or PE32+, complete"
        )
    base = struct.unpack_from("<I", data, 28)[0] if magic == _PE32 else struct.unpack_from("<Q", data, 24)[0]
    (headers_size,) = struct.unpack_from("<I", data, 60)
    (count,) = struct.unpack_from("<I", data, start - 4)
    held = min(count, 16)
    if start + 8 * held > len(data):
        raise FormatError(f"NumberOfRvaAndSizes is {count}", expected=f"directories within {len(data)} bytes")
    found = [struct.unpack_from("<I", data, start + 8 * number)[0] for number in range(held)]
    return base, headers_size, found + [0] * (16 - held)


def _section(view: ElfBytes, row: tuple[Any, ...], strings: int) -> Section:
    raw, _, address, size, offset = row[:5]
    name: bytes = raw.rstrip(b"\0")
    if strings and name.startswith(b"/") and name[1:].isdigit():
        name = _long_name(view, strings + int(name[1:]))
    shown = name.decode("utf-8", "backslashreplace")
    if size:
        if offset % _FILE_UNIT:
            raise FormatError(f"PointerToRawData of {shown} is {offset:#x}", expected=f"a multiple of {_FILE_UNIT:#x}")
        if offset + size > view.size:
            raise FormatError(
                f"section {shown} ends at {offset + size:#x}", expected=f"at most {view.size:#x}, the end of the file"
            )
    return Section(shown, address, offset, size)


def _long_name(view: ElfBytes, offset: int) -> bytes:
    if offset >= view.size:
        raise FormatError(f"a section's name is at {offset:#x}", expected=f"less than {view.size:#x}")
    name, zero, _ = view.read(offset, min(_LONGEST_NAME, view.size - offset)).partition(b"\0")
    if not zero:
        raise FormatError(f"the section's name at {offset:#x} has no end", expected=f"one in {_LONGEST_NAME} bytes")
    return name


def _address(section: Section) -> int:
    return section.address
