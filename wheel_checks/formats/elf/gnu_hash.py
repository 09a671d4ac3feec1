"""Whether a library defines a symbol, by its DT_GNU_HASH: a few reads instead of a symbol table of megabytes.

It is the loader's own way (glibc, elf/dl-lookup.c): a Bloom filter that rejects most names, then the chain of a bucket.
"""

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import ElfBytes
from wheel_checks.formats.elf.dynamic import Tag, read_dynamic_table
from wheel_checks.formats.elf.header import read_header
from wheel_checks.formats.elf.reader import check_count
from wheel_checks.formats.elf.segments import read_segments
from wheel_checks.formats.elf.symbols import MAX_SYMBOLS

LONGEST_CHAIN = 10_000  # symbols of one bucket; real chains have fewer than ten

_FIELD = "DT_GNU_HASH"


class ExportedSymbols:
    """The names that a library defines: ``"_ZN3c105ErrorC1E..." in ExportedSymbols(view)``.

    Raises FormatError for a file that is damaged or has no DT_GNU_HASH, which all linkers of this century write; a
    lookup raises it, too. BytesNeeded when ``view`` does not know the whole file.
    """

    def __init__(self, view: ElfBytes) -> None:
        header, reader = read_header(view)
        table = read_dynamic_table(reader, header, read_segments(reader, header))
        if table is None or Tag.GNU_HASH not in table.values:
            raise FormatError("the library has no DT_GNU_HASH", expected="a shared library that offers symbols")
        self._reader, self._table = reader, table
        start = table.values[Tag.GNU_HASH]
        head = reader.struct("4I")
        numbers = reader.unpack("4I", table.addresses.locate(start, head.size, _FIELD), _FIELD)
        self._buckets, self._first, self._words, self._shift = numbers
        check_count("the number of buckets of DT_GNU_HASH", self._buckets, MAX_SYMBOLS)
        if not self._buckets or not self._words:
            raise FormatError("DT_GNU_HASH has no buckets or no Bloom filter", expected="at least one of each")
        self._bloom_at = start + head.size
        self._buckets_at = self._bloom_at + self._words * reader.bits // 8
        self._chains_at = self._buckets_at + self._buckets * 4
        self._symbol = reader.struct("IBBHAA" if reader.bits == 64 else "IAABBH")
        self._strings = table.strings()

    def __contains__(self, name: str) -> bool:
        wanted = gnu_hash(name)
        if not self._may_have(wanted):
            return False
        number = self._word(self._buckets_at + 4 * (wanted % self._buckets))
        if number < self._first:
            return False
        for _ in range(LONGEST_CHAIN):
            found = self._word(self._chains_at + 4 * (number - self._first))
            if found | 1 == wanted | 1 and self._name(number) == name:
                return True
            if found & 1:
                return False
            number += 1
        raise FormatError("a chain of DT_GNU_HASH has no end", expected=f"one within {LONGEST_CHAIN:,} symbols")

    def _may_have(self, wanted: int) -> bool:
        bits = self._reader.bits
        address = self._bloom_at + (wanted // bits % self._words) * (bits // 8)
        offset = self._table.addresses.locate(address, bits // 8, _FIELD)
        (word,) = self._reader.unpack("A", offset, _FIELD)
        return bool(word >> (wanted % bits) & word >> ((wanted >> self._shift) % bits) & 1)

    def _word(self, address: int) -> int:
        (word,) = self._reader.unpack("I", self._table.addresses.locate(address, 4, _FIELD), _FIELD)
        return word

    def _name(self, number: int) -> str:
        address = self._table.require(Tag.SYMTAB) + number * self._symbol.size
        offset = self._table.addresses.locate(address, self._symbol.size, "DT_SYMTAB")
        (index,) = self._reader.unpack("I", offset, "DT_SYMTAB")  # st_name comes first in both classes
        return self._strings.get(index, "st_name")


def gnu_hash(name: str) -> int:
    """The hash of a symbol's name (dl_new_hash of glibc)."""
    value = 5381
    for byte in name.encode("utf-8", "surrogateescape"):
        value = value * 33 + byte & 0xFFFFFFFF
    return value
