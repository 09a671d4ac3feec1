"""The dynamic symbols of an ELF file (gABI, chapter 4): what it takes from other libraries and what it offers."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Literal, NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.dynamic import DynamicTable, Tag
from wheel_checks.formats.elf.header import ElfHeader
from wheel_checks.formats.elf.reader import ask_both, check_count, check_entry_size
from wheel_checks.formats.elf.sections import SHT_DYNSYM, read_sections
from wheel_checks.formats.elf.versions import MAX_VERSIONS, SymbolVersions, read_versions

MAX_SYMBOLS = 500_000

_BINDINGS = {0: "LOCAL", 1: "GLOBAL", 2: "WEAK", 10: "GNU_UNIQUE"}
_TYPES = {0: "NOTYPE", 1: "OBJECT", 2: "FUNC", 3: "SECTION", 4: "FILE", 5: "COMMON", 6: "TLS", 10: "GNU_IFUNC"}
_UNDEFINED = 0  # SHN_UNDEF
_HIDDEN = 0x8000  # of a .gnu.version entry: not the version that a linker chooses
_LOCAL_VERSION, _GLOBAL_VERSION = 0, 1  # VER_NDX_LOCAL, VER_NDX_GLOBAL
_WIDE_HASH_MACHINES = {22, 0x9026}  # s390x and Alpha have DT_HASH words of 8 bytes, against the gABI

CountedBy = Literal["hash", "gnu-hash", "section", "string-table"]


class DynamicSymbol(NamedTuple):
    """One symbol of .dynsym. A tuple, for there may be hundreds of thousands.

    ``binding`` and ``type`` are named as in the gABI without ``STB_`` and ``STT_``. ``version`` is "" for a symbol
    without; of an undefined one, ``library`` is the one that must define it in this version, else "". ``default`` is
    False for a defined symbol that only programs linked long ago still use (``name@version``, not ``name@@version``).
    """

    name: str
    version: str
    library: str
    binding: str
    type: str
    defined: bool
    default: bool


@dataclass(frozen=True, slots=True)
class DynamicSymbols:
    """The dynamic symbols, in the order of the file and without the empty one at its beginning.

    ``counted_by`` says what gave their number, which no entry of the dynamic section does: one of the hash tables,
    else the section table, else the gap up to the string table.
    """

    symbols: tuple[DynamicSymbol, ...]
    counted_by: CountedBy

    @property
    def undefined(self) -> tuple[DynamicSymbol, ...]:
        """What other libraries must define."""
        return tuple(symbol for symbol in self.symbols if not symbol.defined)

    @property
    def defined(self) -> tuple[DynamicSymbol, ...]:
        """What this file defines."""
        return tuple(symbol for symbol in self.symbols if symbol.defined)


def read_symbols(table: DynamicTable, header: ElfHeader) -> DynamicSymbols | None:
    """The dynamic symbols; None without DT_SYMTAB.

    Raises FormatError and BytesNeeded; the latter asks for the whole symbol and string tables.
    """
    if Tag.SYMTAB not in table.values:
        return None
    reader = table.reader
    layout = reader.struct("IBBHAA" if reader.bits == 64 else "IAABBH")
    check_entry_size("DT_SYMENT", table.require(Tag.SYMENT), layout.size)
    (count, counted_by), (versions, strings) = ask_both(
        partial(count_symbols, table, header, layout.size),
        partial(ask_both, partial(read_versions, table), partial(table.strings, whole=True)),
    )
    check_count("the number of dynamic symbols", count, MAX_SYMBOLS)
    rows, version_indices = ask_both(
        partial(_symbol_rows, table, count * layout.size), partial(symbol_versions_of, table, count)
    )
    by_index = named_versions(versions)
    symbols = []
    for number, row in enumerate(layout.iter_unpack(rows)):
        if reader.bits == 64:
            name_index, info, _, section, _, _ = row
        else:
            name_index, _, _, info, _, section = row
        index = version_indices[number]
        version = by_index.get(index & MAX_VERSIONS)
        if version is None:
            raise FormatError(
                f"the version of dynamic symbol {number} is {index & MAX_VERSIONS}",
                expected="the index of a version that the file needs or defines",
            )
        symbols.append(
            DynamicSymbol(
                strings.get(name_index, "st_name"),
                version[0],
                version[1] if section == _UNDEFINED else "",
                _BINDINGS.get(info >> 4) or str(info >> 4),
                _TYPES.get(info & 15) or str(info & 15),
                section != _UNDEFINED,
                not index & _HIDDEN,
            )
        )
    return DynamicSymbols(tuple(symbols[1:]), counted_by)


def _symbol_rows(table: DynamicTable, size: int) -> bytes:
    return table.reader.read(table.locate(Tag.SYMTAB, size), size, "DT_SYMTAB")


def symbol_versions_of(table: DynamicTable, count: int) -> tuple[int, ...]:
    """The entry of .gnu.version of each symbol; "global" for all if none exists."""
    if Tag.VERSYM not in table.values:
        return (_GLOBAL_VERSION,) * count
    layout = table.reader.struct(f"{count}H")
    return layout.unpack(table.reader.read(table.locate(Tag.VERSYM, layout.size), layout.size, "DT_VERSYM"))


def named_versions(versions: SymbolVersions) -> dict[int, tuple[str, str]]:
    """``(version, library)`` by index; the library is "" for what the file itself defines."""
    named = {_LOCAL_VERSION: ("", ""), _GLOBAL_VERSION: ("", "")}
    for definition in versions.definitions:
        if not definition.base:
            named[definition.index] = (definition.name, "")
    for need in versions.needs:
        for version in need.versions:
            named[version.index] = (version.name, need.library)
    return named


def count_symbols(table: DynamicTable, header: ElfHeader, size: int) -> tuple[int, CountedBy]:
    """The number of dynamic symbols of ``size`` bytes each, and what gave it."""
    if Tag.HASH in table.values:
        return _hash_count(table, header), "hash"
    if Tag.GNU_HASH in table.values and (count := _gnu_hash_count(table)):
        return count, "gnu-hash"
    address = table.values[Tag.SYMTAB]
    for section in read_sections(table.reader, header).of_type(SHT_DYNSYM):
        if section.address == address:
            return section.size // size, "section"
    gap = table.require(Tag.STRTAB) - address
    if gap <= 0:
        raise FormatError(
            "nothing says the number of dynamic symbols",
            expected="DT_HASH, DT_GNU_HASH, a section table, or DT_STRTAB after DT_SYMTAB",
        )
    return gap // size, "string-table"


def _hash_count(table: DynamicTable, header: ElfHeader) -> int:
    """nchain, the second word of DT_HASH, equals the number of symbols (gABI, figure 5-12)."""
    wide = table.reader.bits == 64 and header.machine_number in _WIDE_HASH_MACHINES
    layout = "QQ" if wide else "II"
    length = table.reader.struct(layout).size
    return table.reader.unpack(layout, table.locate(Tag.HASH, length), "DT_HASH")[1]


def _gnu_hash_count(table: DynamicTable) -> int:
    """One more than the last symbol in DT_GNU_HASH; 0 when it holds none, since it omits undefined symbols.

    The table: numbers of buckets, of unhashed symbols, of Bloom words, a shift; the Bloom words, the buckets (the first
    symbol of each chain), the chains (one word per symbol, the lowest bit marking the last of a chain).
    """
    reader = table.reader
    start = table.values[Tag.GNU_HASH]
    head = reader.struct("4I")
    offset = table.locate(Tag.GNU_HASH, head.size)
    bucket_count, unhashed, bloom_words, _ = reader.unpack("4I", offset, "DT_GNU_HASH")
    check_count("the number of buckets of DT_GNU_HASH", bucket_count, MAX_SYMBOLS)
    buckets_address = start + head.size + bloom_words * reader.bits // 8
    layout = reader.struct(f"{bucket_count}I")
    place = table.addresses.locate(buckets_address, layout.size, "the buckets of DT_GNU_HASH")
    last = max(layout.unpack(reader.read(place, layout.size, "the buckets of DT_GNU_HASH")), default=0)
    if not last:
        return 0
    if last < unhashed:
        raise FormatError(f"a bucket of DT_GNU_HASH is {last}", expected=f"0, or at least symoffset, {unhashed}")
    chain_address = buckets_address + layout.size + (last - unhashed) * 4
    for number, word in enumerate(_words(table, chain_address), start=last + 1):
        if word & 1:
            return number
        check_count("the number of symbols in DT_GNU_HASH", number, MAX_SYMBOLS)
    raise FormatError("the last chain of DT_GNU_HASH has no end", expected="a word whose lowest bit is set")


def _words(table: DynamicTable, address: int) -> Iterator[int]:
    """The 32-bit words from ``address`` to the end of its segment, read a few at a time, for chains are short."""
    room = table.addresses.room(address, "a chain of DT_GNU_HASH") // 4
    while room:
        count = min(room, 64)
        layout = table.reader.struct(f"{count}I")
        place = table.addresses.locate(address, layout.size, "a chain of DT_GNU_HASH")
        yield from layout.unpack(table.reader.read(place, layout.size, "a chain of DT_GNU_HASH"))
        address += layout.size
        room -= count
