"""The symbols that an ELF file imports by name, and the hashes of the names that it exports.

Linkers put the undefined symbols, which DT_GNU_HASH omits, first in .dynsym; so only the first rows of .dynsym are
read, and their strings in .dynstr. Exports come from the chains of DT_GNU_HASH alone: each word is the hash of one
exported name, without its lowest bit, so 4 bytes a symbol instead of 24 and a long name. A name whose hash is missing
is not defined; a hash that is present proves the name but for one in two billion per symbol.
"""

from __future__ import annotations

import array
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache, partial

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.dynamic import DynamicTable, Tag
from wheel_checks.formats.elf.gnu_hash import gnu_hash
from wheel_checks.formats.elf.header import SECTION_LAYOUT, ElfHeader, table_sizes
from wheel_checks.formats.elf.reader import Reader, ask_both, check_count, check_entry_size
from wheel_checks.formats.elf.sections import SHT_DYNSYM
from wheel_checks.formats.elf.segments import AddressMap, Segments
from wheel_checks.formats.elf.symbols import (
    MAX_SYMBOLS,
    count_symbols,
    named_versions,
    read_symbols,
    symbol_versions_of,
)
from wheel_checks.formats.elf.versions import MAX_VERSIONS, read_versions

_FIELD = "DT_GNU_HASH"
_MOST_SECTIONS = 4096
# sh_type of .hash, .gnu.hash, .gnu.version, .gnu.version_r and .gnu.version_d; their tags, and the tag of sh_info.
_OF_SECTIONS = (
    (5, Tag.HASH, None),
    (0x6FFFFFF6, Tag.GNU_HASH, None),
    (0x6FFFFFFF, Tag.VERSYM, None),
    (0x6FFFFFFE, Tag.VERNEED, Tag.VERNEEDNUM),
    (0x6FFFFFFD, Tag.VERDEF, Tag.VERDEFNUM),
)
_UNDEFINED = 0  # SHN_UNDEF
_WEAK = 2  # STB_WEAK
_TYPED = 15  # st_info: the type is in the lower four bits
_SECTION, _FILE = 3, 4  # STT_SECTION, STT_FILE
_WINDOW = 4096  # bytes after the last string that is needed, in which it ends


@dataclass(frozen=True, slots=True)
class Imports:
    """The symbols that others must define for the file to load: ``name`` or ``name@version``.

    Weak ones are omitted: without a definition they are 0.
    """

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Exports:
    """The names that a file defines for others, as sorted hashes of 4 bytes each, little-endian."""

    hashes: bytes

    @classmethod
    def of(cls, hashes: Iterable[int]) -> Exports:
        """Exports with these hashes; the lowest bit of each is ignored."""
        return cls(b"".join(value.to_bytes(4, "little") for value in sorted({value & ~1 for value in hashes})))

    def __len__(self) -> int:
        return len(self.hashes) // 4


@lru_cache(512)
def hashes_of(exports: Exports) -> frozenset[int]:
    """The hashes as a set, to ask for many names."""
    words = array.array("I", exports.hashes)
    if sys.byteorder == "big":
        words.byteswap()
    return frozenset(words)


def symbol_hash(name: str) -> int:
    """The hash of a name as stored in :class:`Exports`."""
    return gnu_hash(name) & ~1


def table_of_sections(reader: Reader, header: ElfHeader, segments: Segments) -> DynamicTable:
    """The symbol tables, located by the section headers: a few kilobytes at the end of the file.

    Raises FormatError if they name no dynamic symbols, and BytesNeeded.
    """
    count = table_sizes(reader, header).sections
    layout = reader.struct(SECTION_LAYOUT)
    check_count("the number of sections", count, _MOST_SECTIONS)
    data = reader.read(header.sections_offset, count * layout.size, "the section headers at e_shoff")
    rows = [row[1:8] for row in layout.iter_unpack(data)]  # type, flags, address, offset, size, link, info
    entries: dict[int, int] = {}
    for kind, _, address, _, _, link, info in rows:
        if kind == SHT_DYNSYM and link < count:
            symbol = reader.struct("IBBHAA" if reader.bits == 64 else "IAABBH").size
            entries |= {Tag.SYMTAB: address, Tag.SYMENT: symbol, Tag.STRTAB: rows[link][2], Tag.STRSZ: rows[link][4]}
        for wanted, tag, number in _OF_SECTIONS:
            if kind == wanted:
                entries |= {tag: address} | ({number: info} if number is not None else {})
    if Tag.SYMTAB not in entries:
        raise FormatError("the section headers name no dynamic symbols", expected=".dynsym")
    return DynamicTable(reader, tuple(entries.items()), AddressMap.of_segments(segments.headers), "section")


def read_imports(table: DynamicTable, header: ElfHeader) -> Imports | None:
    """The imported symbols; None without DT_SYMTAB. Raises FormatError and BytesNeeded."""
    if Tag.SYMTAB not in table.values:
        return None
    reader = table.reader
    layout = reader.struct("IBBHAA" if reader.bits == 64 else "IAABBH")
    check_entry_size("DT_SYMENT", table.require(Tag.SYMENT), layout.size)
    count, versions = ask_both(partial(_unhashed, table, header, layout.size), partial(read_versions, table))
    check_count("the number of undefined symbols", count, MAX_SYMBOLS)
    size = count * layout.size
    rows, indices = ask_both(
        lambda: reader.read(table.locate(Tag.SYMTAB, size), size, "DT_SYMTAB"),
        partial(symbol_versions_of, table, count),
    )
    named = named_versions(versions)
    wanted = []
    for number, row in enumerate(layout.iter_unpack(rows)):
        name, info, section = (row[0], row[1], row[3]) if reader.bits == 64 else (row[0], row[3], row[5])
        if section == _UNDEFINED and name and info >> 4 != _WEAK and info & _TYPED not in (_SECTION, _FILE):
            version, _ = named.get(indices[number] & MAX_VERSIONS, ("", ""))
            wanted.append((name, version))
    strings = _strings(table, [name for name, _ in wanted])
    return Imports(tuple(f"{strings[name]}@{version}" if version else strings[name] for name, version in wanted))


def read_exports(table: DynamicTable, header: ElfHeader) -> Exports | None:
    """The hashes of the exported symbols; None without DT_SYMTAB. Raises FormatError and BytesNeeded."""
    if Tag.SYMTAB not in table.values:
        return None
    if Tag.GNU_HASH in table.values:
        return Exports.of(_chains(table)[1])
    symbols = read_symbols(table, header)
    defined = symbols.defined if symbols else ()
    return Exports.of(gnu_hash(symbol.name) for symbol in defined if symbol.binding != "LOCAL")


def _unhashed(table: DynamicTable, header: ElfHeader, size: int) -> int:
    """The number of symbols before those of DT_GNU_HASH; all symbols if that table is empty or missing."""
    if Tag.GNU_HASH in table.values:
        reader = table.reader
        place = table.locate(Tag.GNU_HASH, reader.struct("4I").size)
        buckets, first, words, _ = reader.unpack("4I", place, _FIELD)
        check_count("the number of buckets of DT_GNU_HASH", buckets, MAX_SYMBOLS)
        if any(_buckets(table, buckets, words)):
            return first
    return count_symbols(table, header, size)[0]


def _buckets(table: DynamicTable, count: int, words: int) -> tuple[int, ...]:
    reader = table.reader
    layout = reader.struct(f"{count}I")
    address = table.values[Tag.GNU_HASH] + 16 + words * reader.bits // 8
    return layout.unpack(reader.read(table.addresses.locate(address, layout.size, _FIELD), layout.size, _FIELD))


def _chains(table: DynamicTable) -> tuple[int, tuple[int, ...]]:
    """The first symbol of DT_GNU_HASH, and the words of its chains."""
    reader = table.reader
    place = table.locate(Tag.GNU_HASH, 16)
    count, first, words, _ = reader.unpack("4I", place, _FIELD)
    check_count("the number of buckets of DT_GNU_HASH", count, MAX_SYMBOLS)
    buckets = _buckets(table, count, words)
    last = max(buckets, default=0)
    if not last:
        return first, ()
    check_count("the number of symbols in DT_GNU_HASH", last, MAX_SYMBOLS)
    if last < first:
        raise FormatError(f"a bucket of DT_GNU_HASH is {last}", expected=f"0, or at least symoffset, {first}")
    address = table.values[Tag.GNU_HASH] + 16 + words * reader.bits // 8 + 4 * count
    known = last - first  # words before the last chain, whose length nothing says
    room = table.addresses.room(address, _FIELD) // 4
    reach = known + 16
    while True:
        reach = min(reach, room)
        layout = reader.struct(f"{reach}I")
        offset = table.addresses.locate(address, layout.size, _FIELD)
        chain = layout.unpack(reader.read(offset, layout.size, _FIELD))
        for number in range(known, reach):
            if chain[number] & 1:
                return first, chain[: number + 1]
        if reach == room or reach > known + MAX_SYMBOLS:
            raise FormatError("the last chain of DT_GNU_HASH has no end", expected="a word whose lowest bit is set")
        reach = known + 4 * (reach - known)


def _strings(table: DynamicTable, indices: Iterable[int]) -> dict[int, str]:
    """The strings of .dynstr at ``indices``, from one piece of it. Raises FormatError and BytesNeeded."""
    wanted = sorted(set(indices))
    if not wanted:
        return {}
    size = table.require(Tag.STRSZ)
    if wanted[-1] >= size:
        raise FormatError(f"st_name is {wanted[-1]}", expected=f"less than {size}, the size of DT_STRTAB")
    reader, offset = table.reader, table.locate(Tag.STRTAB, size)
    start = wanted[0]
    data = _piece(reader, offset, start, min(size, wanted[-1] + _WINDOW), size)
    found = {}
    left = 4 * len(data) + (1 << 16)
    for index in wanted:
        end = data.find(b"\0", index - start)
        if end < 0:
            raise FormatError(f"the string at {index} of DT_STRTAB has no end", expected="a zero byte")
        left -= end - (index - start)
        if left < 0:
            raise FormatError("the strings of DT_STRTAB overlap", expected="few overlapping strings")
        found[index] = data[index - start : end].decode("utf-8", "backslashreplace")
    return found


def _piece(reader: Reader, offset: int, start: int, end: int, size: int) -> bytes:
    """The bytes of the table from ``start`` to ``end``, and on to the end of the string there."""
    data = reader.read(offset + start, end - start, "DT_STRTAB")
    if end < size and data.find(b"\0", -_WINDOW) < 0:
        data = reader.read(offset + start, size - start, "DT_STRTAB")
    return data
