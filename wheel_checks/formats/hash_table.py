"""A compressed table of sets of 32-bit hashes: an entry for each build of a package, a set for each of its libraries.

An entry is stored as its difference from another entry, so a hundred thousand hashes of forty builds take a megabyte,
and only the requested entry and those that it is based on are decoded.

The file: a line that names the format; the length of the description and its CRC-32, both 4 bytes; the description,
JSON in zlib's format; then one block of bytes per entry. A block has, for each set of the description, the hashes that
change: sorted, as distances, divided into four planes of bytes, each deflated if that is shorter.
"""

from __future__ import annotations

import json
import struct
import sys
import zlib
from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from wheel_checks.errors import FormatError

MAGIC = b"hash table 1\n"
MAX_DESCRIPTION = 4 * 1024 * 1024  # bytes, inflated
MAX_HASHES = 4_000_000  # of one change of one set
MAX_STEPS = 100  # entries that one entry is built upon
HEAD = struct.Struct("<II")
WORD = 4  # bytes of a hash
_LARGEST = 0xFFFFFFFF


class HashTable:
    """The table in ``data``. Raises FormatError for bytes that are no such table; so does each of its methods."""

    def __init__(self, data: bytes) -> None:
        start = len(MAGIC) + HEAD.size
        if not data.startswith(MAGIC) or len(data) < start:
            raise FormatError("it does not start like a hash table", expected=f"{MAGIC!r}")
        length, check = HEAD.unpack_from(data, len(MAGIC))
        packed = data[start : start + length]
        if len(packed) != length or zlib.crc32(packed) != check:
            raise FormatError("the description of its entries is cut off or damaged", expected="the CRC-32 in its head")
        described = json.loads(_inflate(packed, MAX_DESCRIPTION))
        self.description: Mapping[str, Any] = described["table"]
        self._rows: list[dict[str, Any]] = described["entries"]
        self._data, self._start = memoryview(data), start + length

    @property
    def descriptions(self) -> list[Mapping[str, Any]]:
        """The description of each entry, in the order of their numbers."""
        return [row["about"] for row in self._rows]

    def sets(self, number: int) -> dict[str, frozenset[int]]:
        """The sets of one entry, by name."""
        found: dict[str, set[int]] = {}
        for step in self._steps(number):
            names = set()
            for name, change in self._changes(step):
                found.setdefault(name, set()).symmetric_difference_update(change)
                names.add(name)
            found = {name: hashes for name, hashes in found.items() if name in names}
        return {name: frozenset(hashes) for name, hashes in found.items()}

    def of_each(self, wanted: Collection[int]) -> list[dict[str, frozenset[int]]]:
        """The sets of every entry, by name and in the order of their numbers, limited to the ``wanted`` hashes."""
        hashes = frozenset(wanted)
        found: list[dict[str, frozenset[int]]] = []
        for number, row in enumerate(self._rows):
            before = found[row["base"]] if 0 <= row["base"] < number else {}
            found.append(
                {name: before.get(name, frozenset()) ^ hashes.intersection(c) for name, c in self._changes(number)}
            )
        return found

    def _steps(self, number: int) -> list[int]:
        """The entries that lead to this one, from the first."""
        steps = [number]
        while (base := self._rows[steps[-1]]["base"]) >= 0:
            if base >= steps[-1] or len(steps) >= MAX_STEPS:
                raise FormatError(f"entry {steps[-1]} is built upon entry {base}", expected="an earlier one")
            steps.append(base)
        return steps[::-1]

    def _changes(self, number: int) -> Iterator[tuple[str, list[int]]]:
        """The name of each set of an entry, and the hashes by which it differs from its base."""
        row = self._rows[number]
        start = self._start + row["offset"]
        block = self._data[start : start + row["length"]]
        if len(block) != row["length"] or zlib.crc32(block) != row["check"]:
            raise FormatError(f"entry {number} is cut off or damaged", expected="the CRC-32 in its description")
        position = 0
        for name, count, lengths in row["sets"]:
            yield name, _unpack(block[position : position + sum(lengths)], count, lengths)
            position += sum(lengths)


def _unpack(block: memoryview, count: int, lengths: Sequence[int]) -> list[int]:
    if not 0 <= count <= MAX_HASHES or len(lengths) != WORD:
        raise FormatError(
            f"a set of {count:,} hashes in {len(lengths)} planes", expected=f"at most {MAX_HASHES:,} in 4"
        )
    data = bytearray(count * WORD)
    position = 0
    for plane, length in enumerate(lengths):
        packed = block[position : position + length]
        content = packed if length == count else _inflate(packed, count)
        if len(content) != count:
            raise FormatError(f"a plane of {len(content):,} bytes", expected=f"{count:,}, one for each hash")
        data[plane::WORD] = content
        position += length
    distances = array("I", bytes(data))
    if sys.byteorder == "big":
        distances.byteswap()
    hashes = list(accumulate(distances))
    if hashes and hashes[-1] > _LARGEST:
        raise FormatError(f"a hash of {hashes[-1]:#x}", expected="hashes of 32 bits")
    return hashes


def _inflate(packed: bytes | memoryview, most: int) -> bytes:
    inflater = zlib.decompressobj()
    try:
        content = inflater.decompress(packed, most + 1)
    except zlib.error as error:
        raise FormatError(f"its compressed bytes are damaged ({error})") from None
    if len(content) > most or not inflater.eof:
        raise FormatError(f"its compressed bytes hold more than {most:,} bytes, or have no end")
    return content
