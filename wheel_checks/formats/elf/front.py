"""The tables that linkers put in front of a library, read from its first bytes without its dynamic section.

.gnu.hash, .dynsym, .dynstr, .gnu.version and .gnu.version_r follow one another near the front of a file; the dynamic
section, which says where they are, is after all code. But the tables know themselves: each hash must belong to the
bucket whose chain it is in, and be let through by the Bloom filter; exported names must have their hashes. What
patchelf rearranged does not, and is not taken. For 64-bit little-endian files, as all that wheels have today.
"""

import itertools
import struct
from dataclasses import dataclass
from typing import NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.gnu_hash import gnu_hash
from wheel_checks.formats.elf.linkage import Exports, Imports
from wheel_checks.formats.elf.symbols import MAX_SYMBOLS
from wheel_checks.formats.elf.versions import MAX_VERSIONS, NeededVersion, SymbolVersions, VersionNeed

_FIRST_PLACE = 0x200  # bytes: after the program headers, of which a library has seven at least
_LAST_OLD = 0x400  # where .hash may begin: it is the first table, or follows a note
_ENOUGH = 64  # buckets by which a table is taken for one that continues
_SYMBOL = struct.Struct("<IBBHQQ")
_NEED, _AUX = struct.Struct("<HHIII"), struct.Struct("<IHHII")
_WEAK, _UNTYPED = 2, (3, 4)
_LONGEST_STRINGS = 1 << 26
_NAMES = 8192  # bytes of .dynstr after the last symbol: names of libraries, versions and search paths
_MOST_VERSIONS = 1000
_COMPARED = 4096  # names whose hashes are compared, at most
_MARGIN = 64  # words read beyond the beginning of the last chain


class _Hashed(NamedTuple):
    """A .gnu.hash table: where it ends, the first symbol that it holds, and the words of its chains."""

    end: int
    first: int
    chain: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Front:
    """What the first bytes of a library say of its symbols."""

    imports: Imports
    exports: Exports
    versions: SymbolVersions


def find_exports(head: bytes) -> tuple[Exports | None, int]:
    """The exports of the library that starts with ``head``.

    Returns them, or None and how many bytes of the file a table takes that begins in ``head`` and continues after it
    (0: none does).
    """
    found = _find_hashes(head)
    return (None, found) if isinstance(found, int) else (Exports.of(found.chain), 0)


class _BytesBehindError(Exception):
    """What is read continues after the bytes available, to about ``reach``."""

    def __init__(self, reach: int) -> None:
        super().__init__(f"{reach} bytes are needed")
        self.reach = reach


def read_front(head: bytes) -> tuple[Front | None, int]:
    """All of it, or None and how many bytes of the file would show them (0: none do)."""
    hashed = _find_hashes(head)
    if isinstance(hashed, int):
        return None, hashed
    try:
        return _read_behind(head, hashed), 0
    except _BytesBehindError as behind:
        return None, behind.reach if behind.reach < _LONGEST_STRINGS else 0
    except FormatError:
        return None, 0


def _read_behind(head: bytes, hashed: _Hashed) -> Front:
    """What the tables behind .gnu.hash say. Raises FormatError where others follow, and _BytesBehindError."""
    count = hashed.first + len(hashed.chain)
    symbols_at = (hashed.end + 7) & ~7
    strings_at = symbols_at + count * _SYMBOL.size
    _require(head, strings_at, ahead=16 * count)
    rows = list(_SYMBOL.iter_unpack(head[symbols_at:strings_at]))
    if any(rows[0]):
        raise FormatError("the first dynamic symbol is not empty", expected="zeros")
    last = strings_at + max(row[0] for row in rows)
    _require(head, last + 1, ahead=4096)
    end = head.find(b"\0", last)
    if end < 0:
        raise _BytesBehindError(len(head) + 4096)
    names = [_string(head, strings_at, row[0]) for row in rows]
    step = 1 + len(hashed.chain) // _COMPARED
    if any((gnu_hash(names[hashed.first + n]) ^ hashed.chain[n]) & ~1 for n in range(0, len(hashed.chain), step)):
        raise FormatError("a name differs from its hash", expected=".dynsym and .dynstr behind .gnu.hash")
    versions_at = _version_table(head, end + 1, rows)
    needs_at = (versions_at + 2 * count + 7) & ~7
    needs = _needs(head, needs_at, strings_at)
    indices = struct.unpack_from(f"<{count}H", head, versions_at)
    by_index = {version.index: version.name for need in needs for version in need.versions}
    wanted = []
    for number, (name, info, _, section, _, _) in enumerate(rows):
        if section or not name or info >> 4 == _WEAK or info & 15 in _UNTYPED:
            continue
        version = by_index.get(indices[number] & MAX_VERSIONS, "")
        wanted.append(f"{names[number]}@{version}" if version else names[number])
    return Front(Imports(tuple(wanted)), Exports.of(hashed.chain), SymbolVersions(needs=needs))


def _require(head: bytes, end: int, *, ahead: int) -> None:
    if end > len(head):
        raise _BytesBehindError(end + ahead)


def _string(head: bytes, strings_at: int, index: int) -> str:
    start = strings_at + index
    end = head.find(b"\0", start)
    if end < 0:
        raise FormatError(f"the string at {index} has no end", expected="a string of .dynstr")
    return head[start:end].decode("utf-8", "backslashreplace")


def _version_table(head: bytes, start: int, rows: list[tuple[int, ...]]) -> int:
    """Where .gnu.version begins, after the strings: the names of libraries stand between, and only zeros look like it.

    It is known by its entries: 0 for the first symbol, small numbers for the others, not 0 for those that are defined.
    Raises FormatError where none exists, and _BytesBehindError.
    """
    count = len(rows)
    for offset in range((start + 1) & ~1, min(start + _NAMES, len(head) - 2 * count + 1), 2):
        if head[offset - 1 : offset + 2] != bytes(3):  # the end of the last string, or the byte after it, goes before
            continue
        entries = struct.unpack_from(f"<{count}H", head, offset)
        if all((entry & MAX_VERSIONS) < _MOST_VERSIONS for entry in entries) and all(
            entry for entry, row in zip(entries, rows, strict=True) if row[3]
        ):
            return offset
    _require(head, start + _NAMES + 2 * count, ahead=4096)
    raise FormatError("no table of versions follows the strings", expected=".gnu.version behind .dynstr")


def _needs(head: bytes, at: int, strings_at: int) -> tuple[VersionNeed, ...]:
    """The version needs at ``at``. Raises FormatError where there aren't any, and _BytesBehindError."""
    needs = []
    for _ in range(_MOST_VERSIONS):
        _require(head, at + _NEED.size, ahead=4096)
        revision, count, library, first, following = _NEED.unpack_from(head, at)
        if revision != 1 or not 0 < count < _MOST_VERSIONS:
            break
        versions = []
        place = at + first
        for _ in range(count):
            _require(head, place + _AUX.size, ahead=4096)
            _, flags, other, name, step = _AUX.unpack_from(head, place)
            versions.append(NeededVersion(_string(head, strings_at, name), bool(flags & _WEAK), other))
            place += step
        needs.append(VersionNeed(_string(head, strings_at, library), tuple(versions)))
        if not following:
            return tuple(needs)
        at += following
    raise FormatError("no table of version needs follows", expected=".gnu.version_r behind .gnu.version")


def _find_hashes(head: bytes) -> _Hashed | int:
    """The table .gnu.hash; how many bytes would hold it where it continues after ``head``, 0 for none."""
    most = 0
    for offset in range(_FIRST_PLACE, len(head) - 15, 8):
        numbers = buckets, first, words, shift = struct.unpack_from("<4I", head, offset)
        if not (0 < buckets <= MAX_SYMBOLS and 0 < first <= MAX_SYMBOLS and 0 < words <= MAX_SYMBOLS):
            continue
        if words & (words - 1) or not 0 < shift < 32:
            continue
        at = offset + 16 + 8 * words
        end = at + 4 * buckets
        if end > len(head):
            if not most and (_looks_like_buckets(head, at, first) or _is_cut_off(head, at, words, shift)):
                most = end + 8 * buckets
            continue
        starts = struct.unpack_from(f"<{buckets}I", head, at)
        used = [start for start in starts if start]
        if not used or used[0] != first or any(a >= b for a, b in itertools.pairwise(used)):
            continue
        if used[-1] > first + MAX_SYMBOLS:
            continue
        found = _checked_chain(head, offset, numbers, starts)
        if isinstance(found, int):
            most = most or found
        elif found:
            return _Hashed(end + 4 * len(found), first, found)
    return most or _end_of_old_hashes(head)


def _looks_like_buckets(head: bytes, at: int, first: int) -> bool:
    """Whether what there is of the buckets looks like buckets."""
    count = (len(head) - at) // 4
    if count < _ENOUGH:
        return False
    used = [start for start in struct.unpack_from(f"<{count}I", head, at) if start]
    return bool(used) and used[0] == first and all(a < b for a, b in itertools.pairwise(used))


def _end_of_old_hashes(head: bytes) -> int:
    """How many bytes hold a table .hash that continues after ``head``, and the beginning of what follows; 0 for none.

    Linkers put it before .gnu.hash: two counts, then indices of symbols, of which the second is the number.
    """
    for offset in range(_FIRST_PLACE, min(_LAST_OLD, len(head) - 8 - 4 * _ENOUGH), 8):
        buckets, symbols = struct.unpack_from("<2I", head, offset)
        end: int = offset + 8 + 4 * (buckets + symbols)
        if not (_ENOUGH < buckets <= symbols <= MAX_SYMBOLS) or end + 16 <= len(head):
            continue
        if all(index < symbols for index in struct.unpack_from(f"<{_ENOUGH}I", head, offset + 8)):
            return end + 4 * int(symbols)
    return 0


def _is_cut_off(head: bytes, at: int, words: int, shift: int) -> bool:
    """Whether ``head`` ends before the buckets, and the Bloom filter is one that linkers make.

    GNU ld and gold shift by the number of bits of the filter, lld and mold by 26.
    """
    return at + 4 * _ENOUGH > len(head) and words > _ENOUGH and shift in (words.bit_length() + 5, 26)


def _checked_chain(
    head: bytes, offset: int, numbers: tuple[int, int, int, int], starts: tuple[int, ...]
) -> tuple[int, ...] | int:
    """The words of the chains; how far the table reaches where ``head`` ends before it; none where it contradicts."""
    buckets, first, words, shift = numbers
    bloom = struct.unpack_from(f"<{words}Q", head, offset + 16)
    at = offset + 16 + 8 * words + 4 * buckets
    room = (len(head) - at) // 4
    last = max(starts) - first
    chain = struct.unpack_from(f"<{room}I", head, at)
    number = 0
    for bucket, start in enumerate(starts):
        if not start:
            continue
        if start - first != number:
            return ()
        while True:
            if number >= room:
                return at + 4 * (last + _MARGIN)
            word = chain[number]
            value = word & ~1
            # The lowest bit is that of the chain's end: of the hash itself either is possible.
            if not any(
                (value | low) % buckets == bucket
                and bloom[(value | low) // 64 % words] >> ((value | low) % 64) & 1
                and bloom[(value | low) // 64 % words] >> (((value | low) >> shift) % 64) & 1
                for low in (0, 1)
            ):
                return ()
            number += 1
            if word & 1:
                break
    return chain[:number]
