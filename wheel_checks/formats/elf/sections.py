"""The section headers of an ELF file (gABI, chapter 4): what linkers and debuggers see; the loader ignores them."""

from __future__ import annotations

from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.header import SECTION_LAYOUT, ElfHeader, table_sizes
from wheel_checks.formats.elf.reader import Reader, check_count
from wheel_checks.formats.elf.strings import StringTable

MAX_SECTIONS = 100_000
MAX_NAMES = 1 << 22  # bytes of .shstrtab

SHT_NULL, SHT_SYMTAB, SHT_DYNAMIC, SHT_NOTE, SHT_NOBITS, SHT_DYNSYM = 0, 2, 6, 7, 8, 11
SHF_ALLOC = 2
_TYPES = {
    0: "NULL",
    1: "PROGBITS",
    2: "SYMTAB",
    3: "STRTAB",
    4: "RELA",
    5: "HASH",
    6: "DYNAMIC",
    7: "NOTE",
    8: "NOBITS",
    9: "REL",
    11: "DYNSYM",
    14: "INIT_ARRAY",
    15: "FINI_ARRAY",
    16: "PREINIT_ARRAY",
    17: "GROUP",
    18: "SYMTAB_SHNDX",
    19: "RELR",
    0x6FFFFFF5: "GNU_ATTRIBUTES",
    0x6FFFFFF6: "GNU_HASH",
    0x6FFFFFFD: "GNU_VERDEF",
    0x6FFFFFFE: "GNU_VERNEED",
    0x6FFFFFFF: "GNU_VERSYM",
}

GPU_CODE_SECTIONS = (".nv_fatbin", "__nv_relfatbin")
"""The sections in which nvcc puts fat binaries: of whole programs, and of relocatable device code."""


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
    def type(self) -> str:
        """The type as the gABI names it without ``SHT_``, or its number."""
        return _TYPES.get(self.type_number, f"{self.type_number:#x}")

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
        """The sections that hold fat binaries."""
        return tuple(section for section in self.headers if section.name in GPU_CODE_SECTIONS and section.in_file)


def read_sections(reader: Reader, header: ElfHeader) -> Sections:
    """The section headers. Raises FormatError for a table, a section or a name outside its place, and BytesNeeded."""
    sizes = table_sizes(reader, header)
    if not sizes.sections:
        return Sections(())
    check_count("e_shnum", sizes.sections, MAX_SECTIONS)
    layout = reader.struct(SECTION_LAYOUT)
    table = reader.read(header.sections_offset, sizes.sections * layout.size, "the section header table at e_shoff")
    rows = list(layout.iter_unpack(table))
    names = _read_names(reader, rows, sizes.section_names)
    return Sections(
        tuple(
            _section(reader, number, names.get(row[0], f"sh_name of section {number}") if names else "", row)
            for number, row in enumerate(rows)
        )
    )


def _read_names(reader: Reader, rows: list[tuple[int, ...]], index: int) -> StringTable | None:
    """The content of the section that holds the names; None when the file has none (SHN_UNDEF)."""
    if not index:
        return None
    if index >= len(rows):
        raise FormatError(f"e_shstrndx is {index}", expected=f"less than {len(rows)}, the number of sections")
    offset, size = rows[index][4:6]
    check_count("sh_size of the section with the names", size, MAX_NAMES)
    return StringTable(reader, offset, size, "the section with the names", whole=True)


def _section(reader: Reader, number: int, name: str, row: tuple[int, ...]) -> Section:
    _, kind, flags, address, offset, size, link, info, _, entry_size = row
    section = Section(name, kind, flags, address, offset, size, link, info, entry_size)
    if section.in_file and offset + size > reader.size:
        raise FormatError(
            f"sh_offset and sh_size of section {number} ({name}) are {offset:#x} and {size:#x}",
            expected=f"a place inside the file of {reader.size:#x} bytes",
            hint="the ELF file is cut off or damaged",
        )
    return section
