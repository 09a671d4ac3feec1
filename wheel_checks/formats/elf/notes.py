"""The notes of an ELF file (gABI, "Note Section"): its build identifier, and the x86-64 level that it needs.

Source: elf.h of glibc (NT_GNU_PROPERTY_TYPE_0), x86-64 psABI, "Program Property".
"""

from __future__ import annotations

from collections.abc import Iterator

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.header import ElfHeader
from wheel_checks.formats.elf.reader import Reader
from wheel_checks.formats.elf.sections import SHT_NOTE, read_sections
from wheel_checks.formats.elf.segments import PT_NOTE, Segments

MAX_NOTES = 1 << 16  # bytes read of one note segment; properties are within the first hundreds

_PROPERTIES = 5  # NT_GNU_PROPERTY_TYPE_0
_X86_ISA_1_NEEDED = 0xC0008002
_LEVELS = 0b1111  # one bit for each level from x86-64-v1 (baseline) to v4
_X86_64 = 62  # EM_X86_64
_OWNER = b"GNU\0"


def read_isa_level(reader: Reader, header: ElfHeader, segments: Segments) -> int | None:
    """The highest x86-64 level that the file is marked to need, 1 to 4; None if unmarked, as most files are.

    Linkers mark a file on request (``-z x86-64-v3``); glibc refuses to load it on a lower CPU. Raises FormatError for a
    note or property out of bounds, and BytesNeeded.
    """
    if header.machine_number != _X86_64:
        return None
    needed = 0
    for kind, content in _gnu_notes(reader, header, segments):
        if kind == _PROPERTIES:
            for number, value in _properties(reader, content, 8 if header.bits == 64 else 4):
                if number == _X86_ISA_1_NEEDED and len(value) >= 4:
                    needed |= reader.struct("I").unpack_from(value)[0]
    return (needed & _LEVELS).bit_length() or None


def _properties(reader: Reader, content: bytes, alignment: int) -> Iterator[tuple[int, bytes]]:
    """``(type, data)`` of each property of a note."""
    head = reader.struct("2I")
    position = 0
    while position + head.size <= len(content):
        number, size = head.unpack_from(content, position)
        start = position + head.size
        if start + size > len(content):
            raise FormatError(
                f"pr_datasz of the property at byte {position} of its note is {size}",
                expected=f"a property that ends with its note of {len(content)} bytes",
            )
        yield number, content[start : start + size]
        position = _padded(start + size, alignment)


def _gnu_notes(reader: Reader, header: ElfHeader, segments: Segments) -> Iterator[tuple[int, bytes]]:
    """``(type, content)`` of the notes of GNU, from the note segments or, without program headers, from sections."""
    places = [(each.offset, each.file_size, each.alignment) for each in segments.of_type(PT_NOTE)]
    if not segments.headers:
        places = [(each.offset, each.size, 4) for each in read_sections(reader, header).of_type(SHT_NOTE)]
    for offset, size, alignment in places:
        data = reader.read(offset, min(size, MAX_NOTES), "PT_NOTE")
        for owner, kind, content in _notes(reader, data, 8 if alignment == 8 else 4, cut=size > MAX_NOTES):
            if owner == _OWNER:
                yield kind, content


def _notes(reader: Reader, data: bytes, alignment: int, *, cut: bool) -> Iterator[tuple[bytes, int, bytes]]:
    """``(owner, type, content)`` of each note: three words, then both, padded; the last may be missing when ``cut``."""
    head = reader.struct("3I")
    position = 0
    while position + head.size <= len(data):
        owner_size, content_size, kind = head.unpack_from(data, position)
        owner = position + head.size
        content = _padded(owner + owner_size, alignment)
        end = content + content_size
        if end > len(data):
            if cut:
                return
            raise FormatError(
                f"n_namesz and n_descsz of the note at byte {position} of PT_NOTE are {owner_size} and {content_size}",
                expected=f"a note that ends with its segment of {len(data)} bytes",
            )
        yield data[owner : owner + owner_size], kind, data[content:end]
        position = _padded(end, alignment)


def _padded(position: int, alignment: int) -> int:
    return -(-position // alignment) * alignment
