"""The program headers of an ELF file (gABI, chapter 5): the mapped parts, and the file offsets of addresses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.header import ElfHeader, table_sizes
from wheel_checks.formats.elf.reader import Reader, check_count, check_entry_size

MAX_SEGMENTS = 4096
MAX_INTERPRETER = 4096  # bytes, PATH_MAX of Linux

PT_LOAD, PT_DYNAMIC, PT_INTERP, PT_NOTE = 1, 2, 3, 4
PT_GNU_STACK = 0x6474E551
_EXECUTABLE = 1  # PF_X


@dataclass(frozen=True, slots=True)
class Segment:
    """One program header. Offsets, sizes and ``alignment`` in bytes."""

    type: int
    flags: int
    offset: int
    address: int
    file_size: int
    memory_size: int
    alignment: int


@dataclass(frozen=True, slots=True)
class Segments:
    """The program headers in file order, possibly empty."""

    headers: tuple[Segment, ...]

    def of_type(self, type_number: int) -> tuple[Segment, ...]:
        """The segments of one p_type."""
        return tuple(segment for segment in self.headers if segment.type == type_number)

    @property
    def load_alignments(self) -> tuple[int, ...]:
        """The alignment of each loadable segment in bytes. The loader requires multiples of a page."""
        return tuple(segment.alignment for segment in self.of_type(PT_LOAD))

    @property
    def smallest_load_alignment(self) -> int | None:
        """The largest page size in bytes with which the file still loads; None when nothing is loadable."""
        return min(self.load_alignments, default=None)

    @property
    def executable_stack(self) -> bool | None:
        """Whether PT_GNU_STACK requests an executable stack; None without it, when the machine's default applies."""
        stack = self.of_type(PT_GNU_STACK)
        return bool(stack[-1].flags & _EXECUTABLE) if stack else None


def read_segments(reader: Reader, header: ElfHeader) -> Segments:
    """The program headers, checked as far as loading and reading rest on them.

    Raises FormatError for a table or a loadable segment outside the file, loadable segments that share addresses, or
    alignments that no loader accepts; BytesNeeded when the table is unknown.
    """
    count = table_sizes(reader, header).segments
    if not count:
        return Segments(())
    check_count("e_phnum", count, MAX_SEGMENTS)
    layout = reader.struct("IIAAAAAA" if reader.bits == 64 else "AAAAAAIA")
    check_entry_size("e_phentsize", header.segment_size, layout.size)
    table = reader.read(header.segments_offset, count * layout.size, "the program header table at e_phoff")
    if reader.bits == 64:
        headers = tuple(
            Segment(kind, flags, offset, address, file_size, memory_size, alignment)
            for kind, flags, offset, address, _, file_size, memory_size, alignment in layout.iter_unpack(table)
        )
    else:
        headers = tuple(
            Segment(kind, flags, offset, address, file_size, memory_size, alignment)
            for kind, offset, address, _, file_size, memory_size, flags, alignment in layout.iter_unpack(table)
        )
    for number, segment in enumerate(headers):
        if segment.type == PT_LOAD:
            _check_loadable(number, segment, reader.size)
    AddressMap.of_segments(headers)
    return Segments(headers)


def _check_loadable(number: int, segment: Segment, size: int) -> None:
    where = f"of program header {number} (PT_LOAD)"
    alignment = segment.alignment
    if segment.offset + segment.file_size > size:
        raise FormatError(
            f"p_offset and p_filesz {where} are {segment.offset:#x} and {segment.file_size:#x}",
            expected=f"a place inside the file of {size:#x} bytes",
            hint="the ELF file is cut off or damaged",
        )
    if segment.file_size > segment.memory_size:
        raise FormatError(
            f"p_filesz {where} is {segment.file_size:#x}", expected=f"at most p_memsz, {segment.memory_size:#x}"
        )
    if alignment & (alignment - 1):
        raise FormatError(f"p_align {where} is {alignment:#x}", expected="a power of two, or 0")
    if alignment and (segment.address - segment.offset) % alignment:
        raise FormatError(
            f"p_vaddr and p_offset {where} are {segment.address:#x} and {segment.offset:#x}",
            expected=f"the same remainder by p_align, {alignment:#x}",
        )


class _Mapped(NamedTuple):
    """``size`` bytes of the file at ``offset``, mapped at ``address``; ``memory_size`` includes the zero fill."""

    address: int
    memory_size: int
    offset: int
    size: int
    name: str


class AddressMap:
    """Maps addresses to file offsets. Raises FormatError when two mapped pieces share an address."""

    def __init__(self, pieces: Iterable[_Mapped]) -> None:
        self._pieces = sorted(piece for piece in pieces if piece.memory_size)
        for one, next_one in zip(self._pieces, self._pieces[1:], strict=False):
            if next_one.address < one.address + one.memory_size:
                raise FormatError(
                    f"{next_one.name} begins at address {next_one.address:#x}",
                    expected=f"an address after {one.name}, which ends at {one.address + one.memory_size:#x}",
                )

    @classmethod
    def of_segments(cls, headers: Iterable[Segment]) -> AddressMap:
        """A map of the PT_LOAD segments, as the loader maps them."""
        return cls(
            _Mapped(segment.address, segment.memory_size, segment.offset, segment.file_size, f"program header {number}")
            for number, segment in enumerate(headers)
            if segment.type == PT_LOAD
        )

    @classmethod
    def of_sections(cls, places: Iterable[tuple[int, int, int, str]]) -> AddressMap:
        """The same from ``(address, offset, size, name)`` of the sections that take part in the program image."""
        return cls(_Mapped(address, size, offset, size, name) for address, offset, size, name in places)

    def locate(self, address: int, length: int, field: str) -> int:
        """The offset of ``length`` bytes at ``address``. Raises FormatError unless one piece contains all of them."""
        return self._find(address, length, field)[0]

    def room(self, address: int, field: str) -> int:
        """How many bytes there are from ``address`` to the end of its piece."""
        return self._find(address, 0, field)[1]

    def _find(self, address: int, length: int, field: str) -> tuple[int, int]:
        number = bisect_right(self._pieces, address, key=lambda piece: piece.address) - 1
        if number >= 0:
            piece = self._pieces[number]
            skipped = address - piece.address
            if skipped + length <= piece.size:
                return piece.offset + skipped, piece.size - skipped
        raise FormatError(
            f"{field} points to {length} bytes at address {address:#x}",
            expected="an address range that a loadable segment fills from the file",
        )


def read_interpreter(reader: Reader, segments: Segments) -> str | None:
    """The program that PT_INTERP asks to load this one, or None. Raises FormatError and BytesNeeded."""
    found = segments.of_type(PT_INTERP)
    if not found or not found[0].file_size:
        return None
    check_count("p_filesz of PT_INTERP", found[0].file_size, MAX_INTERPRETER)
    content = reader.read(found[0].offset, found[0].file_size, "PT_INTERP")
    path, end, _ = content.partition(b"\0")
    if not end:
        raise FormatError(f"PT_INTERP is {content[:40]!r}", expected="a path that ends with a zero byte")
    return path.decode("utf-8", "backslashreplace")
