"""The section headers of an ELF file (gABI, chapter 4), which linkers and debuggers read; the loader ignores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.header import SECTION_LAYOUT, ElfHeader, table_sizes
from wheel_checks.formats.elf.reader import Reader, ask_together, check_count
from wheel_checks.formats.elf.strings import StringTable

MAX_SECTIONS = 100_000
MAX_NAMES = 1 << 22  # bytes of .shstrtab
_EXTENDED_COUNT = 0xFF00  # SHN_LORESERVE: from here on section header 0 has the number of sections

SHT_NULL, SHT_SYMTAB, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 0, 2, 6, 7, 8, 11
SHF_ALLOC = 2
GPU_CODE_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""The sections in which nvcc puts fat binaries: of whole programs, and of relocatable device code."""
HIP_SECTION = ".hip_fatbin"
"""The section in which hipcc puts offload bundles."""
OFFLOAD_PREFIX = "__CLANG_OFFLOAD_BUNDLE__"
"""The prefix of clang's section names for offloaded code; the kind and the target follow."""


@dataclass(frozen=True, slots=True)
class Section:
    """One section header with its name. ``offset`` and ``size`` in bytes; NOBITS sections take no room in the file."""

    name: str
    type_number: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    entry_size: int

    @property
    def in_file(self) -> bool:
        """True when the section has bytes in the file."""
        return self.type_number not in (SHT_NULL, SHT_NOBITS)


@dataclass(frozen=True, slots=True)
class Sections:
    """The section headers, in the order of the file, none when the table was removed."""

    headers: tuple[Section, ...]

    def named(self, name: str) -> tuple[Section, ...]:
        """The sections of this name; there may be several."""
        return tuple(section for section in self.headers if section.name == name)

    def of_type(self, type_number: int) -> tuple[Section, ...]:
        """The sections of one sh_type that have bytes in the file."""
        return tuple(section for section in self.headers if section.type_number == type_number and section.in_file)

    @property
    def gpu_code(self) -> tuple[Section, ...]:
        """The sections of fat binaries."""
        return tuple(section for section in self.headers if section.name in GPU_CODE_SECTIONS and section.in_file)


def read_sections(reader: Reader, header: ElfHeader) -> Sections:
    """The section headers. Raises FormatError for a table, a section or a name outside its place, and BytesNeeded."""
    rows, index = read_header_rows(reader, header)
    names = _read_names(reader, rows, index)
    return Sections(
        tuple(
            _section(reader, number, names.get(row.name, f"sh_name of section {number}") if names else "", row)
            for number, row in enumerate(rows)
        )
    )


class HeaderRow(NamedTuple):
    """One section header as written (gABI figure 4-8)."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


def read_header_rows(reader: Reader, header: ElfHeader) -> tuple[list[HeaderRow], int]:
    """The section headers without names, and the index of the name table. Raises FormatError and BytesNeeded."""
    sizes = table_sizes(reader, header)
    if not sizes.sections:
        return [], 0
    check_count("e_shnum", sizes.sections, MAX_SECTIONS)
    layout = reader.struct(SECTION_LAYOUT)
    table = reader.read(header.sections_offset, sizes.sections * layout.size, "the section header table at e_shoff")
    return [HeaderRow(*row) for row in layout.iter_unpack(table)], sizes.section_names


def read_place(reader: Reader, header: ElfHeader, number: int) -> tuple[int, int, int]:
    """sh_name, sh_offset and sh_size of one section, by these fields alone. Raises FormatError and BytesNeeded."""
    start, address = _start(reader, header, number), reader.struct("A").size
    field = f"section header {number}"
    (name,), (offset, size) = ask_together(
        lambda: reader.unpack("I", start, field), lambda: reader.unpack("AA", start + 8 + 2 * address, field)
    )
    return name, offset, size


def read_kind_and_link(reader: Reader, header: ElfHeader, number: int) -> tuple[int, int]:
    """sh_type and sh_link of one section, by these fields alone. Raises FormatError and BytesNeeded."""
    start, address = _start(reader, header, number), reader.struct("A").size
    field = f"section header {number}"
    (kind,), (link,) = ask_together(
        lambda: reader.unpack("I", start + 4, field), lambda: reader.unpack("I", start + 8 + 4 * address, field)
    )
    return kind, link


def _start(reader: Reader, header: ElfHeader, number: int) -> int:
    return header.sections_offset + number * reader.struct(SECTION_LAYOUT).size


def zeros_of_headers(header: ElfHeader, file_size: int) -> list[tuple[int, int]]:
    """``(offset, length)`` in the file of the bytes of its section headers that must be zero.

    Section header 0, and the upper bytes of offsets, sizes, flags and indices that a sound file of ``file_size`` bytes
    cannot have (gABI figure 4-8). For extended numbers, other byte orders and 32 bits only the common part.
    """
    count, start = header.section_count, header.sections_offset
    if not start or header.section_size != 64 or header.bits != 64 or not 0 < count < _EXTENDED_COUNT:
        return []
    if start + 64 * count > file_size or header.byte_order != "little":
        return []
    width = max(1, (file_size.bit_length() + 7) // 8)  # bytes of an offset in this file
    fields = [(3, 1), (12, 4), (22, 2), (24 + width, 8 - width), (38, 2), (42, 2), (52, 4), (56 + width, 8 - width)]
    rows = range(start + 64, start + 64 * count, 64)
    return [(start, 64)] + [(row + offset, length) for row in rows for offset, length in fields if length > 0]


def _read_names(reader: Reader, rows: Sequence[HeaderRow], index: int) -> StringTable | None:
    """The content of the section with the names; None when the file has none (SHN_UNDEF)."""
    if not index:
        return None
    if index >= len(rows):
        raise FormatError(f"e_shstrndx is {index}", expected=f"less than {len(rows)}, the number of sections")
    offset, size = rows[index].offset, rows[index].size
    check_count("sh_size of the section with the names", size, MAX_NAMES)
    return StringTable(reader, offset, size, "the section with the names", whole=True)


def _section(reader: Reader, number: int, name: str, row: HeaderRow) -> Section:
    _, kind, flags, address, offset, size, link, info, _, entry_size = row
    section = Section(name, kind, flags, address, offset, size, link, info, entry_size)
    if section.in_file and offset + size > reader.size:
        raise FormatError(
            f"sh_offset and sh_size of section {number} ({name}) are {offset:#x} and {size:#x}",
            expected=f"a place inside the file of {reader.size:#x} bytes",
            hint="the ELF file is cut off or damaged",
        )
    return section
