"""The build identifier of an ELF file, from its notes (gABI, "Note Section"; GNU: NT_GNU_BUILD_ID)."""

from __future__ import annotations

from collections.abc import Iterator

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf_header import ElfHeader
from wheel_checks.formats.elf_reader import Reader
from wheel_checks.formats.elf_sections import SHT_NOTE, read_sections
from wheel_checks.formats.elf_segments import PT_NOTE, Segments

MAX_NOTES = 1 << 16  # bytes read of one note segment; identifiers are within the first hundreds

_BUILD_ID = 3  # NT_GNU_BUILD_ID
_OWNER = b"GNU\0"


def read_build_id(reader: Reader, header: ElfHeader, segments: Segments) -> str | None:
    """The build identifier in hexadecimal, as debuggers and ``file`` show it; None when there is none.

    It is looked for in the note segments, and in the note sections of a file without program headers. Raises
    FormatError for a note that leaves its segment, and BytesNeeded.
    """
    places = [(each.offset, each.file_size, each.alignment) for each in segments.of_type(PT_NOTE)]
    if not segments.headers:
        places = [(each.offset, each.size, 4) for each in read_sections(reader, header).of_type(SHT_NOTE)]
    for offset, size, alignment in places:
        data = reader.read(offset, min(size, MAX_NOTES), "PT_NOTE")
        for owner, kind, content in _notes(reader, data, 8 if alignment == 8 else 4, cut=size > MAX_NOTES):
            if owner == _OWNER and kind == _BUILD_ID:
                return content.hex()
    return None


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
