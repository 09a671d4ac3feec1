"""ELF files (System V gABI, with the GNU extensions): bytes in, facts out, from a whole file or from parts of one.

    facts = read_elf(WholeFile(data))
    facts.dynamic.needed        # ("libc10.so", "libc.so.6")

A part that cannot be read from the bytes available is :class:`Missing`, with the ranges that it needs. Program headers
and PT_DYNAMIC, which the loader reads, take precedence over the section table.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, ElfBytes, KnownRegions, merge
from wheel_checks.formats.elf.dynamic import DynamicFacts, DynamicTable, read_dynamic, read_dynamic_table
from wheel_checks.formats.elf.header import ElfHeader, read_header
from wheel_checks.formats.elf.linkage import Exports, Imports, read_exports, read_imports, table_of_sections
from wheel_checks.formats.elf.notes import read_isa_level
from wheel_checks.formats.elf.sections import Sections, read_sections
from wheel_checks.formats.elf.segments import Segments, read_interpreter, read_segments
from wheel_checks.formats.elf.symbols import DynamicSymbols, read_symbols
from wheel_checks.formats.elf.versions import SymbolVersions, read_versions

MAX_ROUNDS = 24  # of asking for bytes; real files take five at most

T = TypeVar("T")


class Part(StrEnum):
    """The parts of the facts that can be requested one by one; the header always comes along."""

    SEGMENTS = "segments"
    INTERPRETER = "interpreter"
    DYNAMIC = "dynamic"
    VERSIONS = "versions"
    ISA_LEVEL = "isa_level"
    SECTIONS = "sections"
    SYMBOLS = "symbols"
    IMPORTS = "imports"
    EXPORTS = "exports"


LOADER_PARTS = frozenset({Part.SEGMENTS, Part.INTERPRETER, Part.DYNAMIC, Part.VERSIONS})
"""The parts that the loader reads: enough to judge linking, without the section table of a file with segments."""
LINKAGE_PARTS = frozenset({Part.IMPORTS, Part.EXPORTS})
"""The imported symbols, and the hashes of the exported ones."""
ALL_PARTS = frozenset(Part) - {Part.SYMBOLS} - LINKAGE_PARTS
"""Everything that is cheap to read. Symbols take whole tables, tens of megabytes of the largest libraries."""


@dataclass(frozen=True, slots=True)
class Missing:
    """A part that was not read: the bytes in ``ranges`` are missing, or, if empty, it was not requested."""

    ranges: tuple[ByteRange, ...] = ()


@dataclass(frozen=True, slots=True)
class ElfFacts:
    """The facts of an ELF file. None means that the file has no such part.

    ``isa_level`` is the x86-64 level (1 to 4) that the file is marked to need. ``possible`` are parts that were
    inferred from other bytes and might be wrong.
    """

    header: ElfHeader
    segments: Segments | Missing
    interpreter: str | Missing | None
    dynamic: DynamicFacts | Missing | None
    versions: SymbolVersions | Missing
    isa_level: int | Missing | None
    sections: Sections | Missing
    symbols: DynamicSymbols | Missing | None
    possible: frozenset[Part] = frozenset()
    imports: Imports | Missing | None = Missing()
    exports: Exports | Missing | None = Missing()

    @property
    def missing(self) -> frozenset[Part]:
        """The parts that were requested and need more bytes."""
        return frozenset(part for part in Part if isinstance(value := getattr(self, part), Missing) and value.ranges)

    @property
    def needed_ranges(self) -> tuple[ByteRange, ...]:
        """The ranges to fetch next for all missing parts; more may be needed after that."""
        return merge(
            piece for part in Part if isinstance(value := getattr(self, part), Missing) for piece in value.ranges
        )


def read_elf(view: ElfBytes, parts: Collection[Part] = ALL_PARTS) -> ElfFacts:
    """The ``parts`` of the facts that the known bytes show.

    Raises BytesNeeded when the header is unknown, and FormatError, naming the field, when the requested parts are
    corrupt. Time and memory are bounded by the real size of the parts in the file.
    """
    header, reader = read_header(view)

    def known(part: Part, read: Callable[[], T]) -> T | Missing:
        try:
            return read() if part in parts else Missing()
        except BytesNeeded as needed:
            return Missing(needed.ranges)

    def segments() -> Segments:
        return read_segments(reader, header)

    def of_table(read: Callable[[DynamicTable], T], without: T) -> T:
        table = read_dynamic_table(reader, header, segments())
        return read(table) if table else without

    def of_symbols(read: Callable[[DynamicTable], T | None]) -> T | None:
        """Read by the dynamic section, as the loader does, or by the section headers if it is out of reach."""
        try:
            return of_table(read, None)
        except BytesNeeded as needed:
            try:
                return read(table_of_sections(reader, header, segments()))
            except FormatError:
                raise needed from None
            except BytesNeeded as more:
                raise BytesNeeded([*needed.ranges, *more.ranges]) from None

    return ElfFacts(
        header=header,
        segments=known(Part.SEGMENTS, segments),
        interpreter=known(Part.INTERPRETER, lambda: read_interpreter(reader, segments())),
        dynamic=known(Part.DYNAMIC, lambda: of_table(read_dynamic, None)),
        versions=known(Part.VERSIONS, lambda: of_table(read_versions, SymbolVersions())),
        isa_level=known(Part.ISA_LEVEL, lambda: read_isa_level(reader, header, segments())),
        sections=known(Part.SECTIONS, lambda: read_sections(reader, header)),
        symbols=known(Part.SYMBOLS, lambda: of_table(lambda table: read_symbols(table, header), None)),
        imports=known(Part.IMPORTS, lambda: of_symbols(lambda table: read_imports(table, header))),
        exports=known(Part.EXPORTS, lambda: of_symbols(lambda table: read_exports(table, header))),
    )


def read_elf_by_ranges(
    size: int, read_many: Callable[[Sequence[tuple[int, int]]], Sequence[bytes]], parts: Collection[Part] = ALL_PARTS
) -> ElfFacts:
    """The ``parts`` of a file of ``size`` bytes, complete; ``read_many`` returns the bytes of each (offset, length).

    Raises FormatError as :func:`read_elf` does, and for a file so scattered that it takes more than MAX_ROUNDS calls,
    and the errors of ``read_many``.
    """
    known = KnownRegions(size)
    for _ in range(MAX_ROUNDS):
        try:
            facts = read_elf(known, parts)
            ranges = facts.needed_ranges
            if not ranges:
                return facts
        except BytesNeeded as needed:
            ranges = needed.ranges
        for piece, data in zip(ranges, read_many(ranges), strict=True):
            known.add(piece.offset, data)
    raise FormatError(
        f"the structures of the ELF file are scattered over more than {MAX_ROUNDS} places that lead to one another",
        expected="tables that each are in one place",
    )
