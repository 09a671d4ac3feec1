"""The dynamic section of an ELF file (gABI, chapter 5): the libraries to load and the search paths."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Literal

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.header import ElfHeader
from wheel_checks.formats.elf.reader import Reader, ask_together, check_count
from wheel_checks.formats.elf.sections import SHF_ALLOC, SHT_DYNAMIC, read_sections
from wheel_checks.formats.elf.segments import PT_DYNAMIC, PT_LOAD, AddressMap, Segments
from wheel_checks.formats.elf.strings import StringTable

MAX_ENTRIES = 4096
_BLOCK = 256  # entries read at once; most files have 30
MAX_STRINGS = 1 << 26  # bytes of .dynstr


class Tag(IntEnum):
    """The tags of the dynamic section that are read here; messages name them with ``DT_`` in front."""

    NULL = 0
    NEEDED = 1
    HASH = 4
    STRTAB = 5
    SYMTAB = 6
    STRSZ = 10
    SYMENT = 11
    SONAME = 14
    RPATH = 15
    TEXTREL = 22
    RUNPATH = 29
    FLAGS = 30
    GNU_HASH = 0x6FFFFEF5
    VERSYM = 0x6FFFFFF0
    FLAGS_1 = 0x6FFFFFFB
    VERDEF = 0x6FFFFFFC
    VERDEFNUM = 0x6FFFFFFD
    VERNEED = 0x6FFFFFFE
    VERNEEDNUM = 0x6FFFFFFF

    def __str__(self) -> str:
        return f"DT_{self.name}"


_DF_TEXTREL = 0x4


@dataclass(frozen=True, slots=True)
class DynamicFacts:
    """The entries of the dynamic section. Names are as written, ``$ORIGIN`` kept.

    ``found_by`` says whether the PT_DYNAMIC segment led to it, as for the loader, or only the section table. ``rpath``
    and ``runpath`` are split at colons; an empty entry means the working directory. With a ``runpath`` the loader
    ignores ``rpath`` (ld.so(8)).
    """

    found_by: Literal["segment", "section"]
    needed: tuple[str, ...]
    soname: str | None
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    text_relocations: bool


class DynamicTable:
    """The entries up to DT_NULL, and their tables. Of repeated single tags the last is used, as in ld.so."""

    def __init__(
        self,
        reader: Reader,
        entries: tuple[tuple[int, int], ...],
        addresses: AddressMap,
        found_by: Literal["segment", "section"],
    ) -> None:
        self.reader = reader
        self.entries = entries
        self.values = dict(entries)
        self.addresses = addresses
        self.found_by = found_by

    def locate(self, tag: Tag, length: int) -> int:
        """The offset in the file of ``length`` bytes at the address in ``tag``. Raises FormatError."""
        return self.addresses.locate(self.require(tag), length, str(tag))

    def require(self, tag: Tag) -> int:
        """The value of ``tag``. Raises FormatError when it is missing."""
        value = self.values.get(tag)
        if value is None:
            raise FormatError(f"the dynamic section has no {tag}", expected="one, since others refer to it")
        return value

    def strings(self, *, whole: bool = False) -> StringTable:
        """The string table that the entries refer to. Raises FormatError; BytesNeeded when ``whole`` is unknown."""
        size = self.require(Tag.STRSZ)
        check_count("DT_STRSZ", size, MAX_STRINGS)
        offset = self.locate(Tag.STRTAB, size)
        return StringTable(self.reader, offset, size, "DT_STRTAB", whole=whole)


def read_dynamic_table(reader: Reader, header: ElfHeader, segments: Segments) -> DynamicTable | None:
    """The dynamic section by PT_DYNAMIC, or by the section table in a file without program headers.

    None for a statically linked program, an object file, or a file of debug information split off.

    Raises FormatError when it has no end or the two places that PT_DYNAMIC shows differ, and BytesNeeded.
    """
    dynamic = segments.of_type(PT_DYNAMIC)
    if dynamic and dynamic[0].file_size:
        segment = dynamic[0]
        addresses = AddressMap.of_segments(segments.headers)
        if segments.of_type(PT_LOAD):
            offset = addresses.locate(segment.address, segment.file_size, "p_vaddr of PT_DYNAMIC")
            if offset != segment.offset:
                raise FormatError(
                    f"p_offset of PT_DYNAMIC is {segment.offset:#x}",
                    expected=f"{offset:#x}, where the loader finds its p_vaddr, {segment.address:#x}",
                )
        entries = tuple(_entries(reader, segment.offset, segment.file_size, "PT_DYNAMIC"))
        return DynamicTable(reader, entries, addresses, "segment")
    if segments.headers:
        return None
    sections = read_sections(reader, header)
    for section in sections.of_type(SHT_DYNAMIC):
        addresses = AddressMap.of_sections(
            (each.address, each.offset, each.size, f"section {each.name}")
            for each in sections.headers
            if each.in_file and each.flags & SHF_ALLOC
        )
        entries = tuple(_entries(reader, section.offset, section.size, f"section {section.name}"))
        return DynamicTable(reader, entries, addresses, "section")
    return None


def _entries(reader: Reader, offset: int, size: int, field: str) -> Iterator[tuple[int, int]]:
    """The entries of the dynamic section up to DT_NULL."""
    layout = reader.struct("AA")
    count = size // layout.size
    for first in range(0, min(count, MAX_ENTRIES), _BLOCK):
        block = reader.read(offset + first * layout.size, min(_BLOCK, count - first) * layout.size, field)
        for tag, value in layout.iter_unpack(block):
            if tag == Tag.NULL:
                return
            yield tag, value
    raise FormatError(f"{field} of {size:#x} bytes has no end", expected=f"DT_NULL within {MAX_ENTRIES} entries")


def read_dynamic(table: DynamicTable) -> DynamicFacts:
    """The facts of a dynamic section. Raises FormatError, and BytesNeeded for all unknown strings at once."""
    named = [entry for entry in table.entries if entry[0] in (Tag.NEEDED, Tag.SONAME, Tag.RPATH, Tag.RUNPATH)]
    strings = table.strings() if named else None
    names = ask_together(*(partial(strings.get, index, str(Tag(tag))) for tag, index in named)) if strings else []
    last = {tag: name for (tag, _), name in zip(named, names, strict=True)}
    return DynamicFacts(
        found_by=table.found_by,
        needed=tuple(name for (tag, _), name in zip(named, names, strict=True) if tag == Tag.NEEDED),
        soname=last.get(Tag.SONAME),
        rpath=_paths(last.get(Tag.RPATH)),
        runpath=_paths(last.get(Tag.RUNPATH)),
        text_relocations=Tag.TEXTREL in table.values or bool(table.values.get(Tag.FLAGS, 0) & _DF_TEXTREL),
    )


def _paths(joined: str | None) -> tuple[str, ...]:
    return tuple(joined.split(":")) if joined else ()
