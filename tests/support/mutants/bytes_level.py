"""Every field of every header set to other values, and bytes cut out, put in, doubled and swapped at every boundary."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tests.support.mutants.base import FILES, Mutant, entries, from_a_pipe
from tests.support.zips import ZipEntry, write_zip

LOCAL = {"version": 2, "flags": 2, "method": 2, "time": 2, "date": 2, "crc32": 4, "compressed size": 4, "size": 4}
LOCAL |= {"name length": 2, "extra length": 2}
ENTRY = {"made by": 2, "version": 2, "flags": 2, "method": 2, "time": 2, "date": 2, "crc32": 4, "compressed size": 4}
ENTRY |= {"size": 4, "name length": 2, "extra length": 2, "comment length": 2, "disk": 2, "internal attributes": 2}
ENTRY |= {"external attributes": 4, "offset": 4}
END = {"disk": 2, "directory disk": 2, "entries here": 2, "entries": 2, "directory size": 4, "directory offset": 4}
END |= {"comment length": 2}
END64 = {"record size": 8, "made by": 2, "version": 2, "disk": 4, "directory disk": 4, "entries here": 8, "entries": 8}
END64 |= {"directory size": 8, "directory offset": 8}
LOCATOR = {"disk": 4, "offset of the record": 8, "disks": 4}
DESCRIPTOR = {"crc32": 4, "compressed size": 4, "size": 4}
RECORDS = {
    b"PK\3\4": ("local header", LOCAL),
    b"PK\1\2": ("directory entry", ENTRY),
    b"PK\5\6": ("end record", END),
    b"PK\6\6": ("zip64 end record", END64),
    b"PK\6\7": ("zip64 locator", LOCATOR),
    b"PK\7\x08": ("data descriptor", DESCRIPTOR),
}
PUT_IN = {
    "a zero": b"\0",
    "zeros": bytes(16),
    "text": b"not of the archive",
    "70,000 zeros": bytes(70_000),
    "a signature of a local header": b"PK\3\4",
    "a signature of a descriptor": b"PK\7\x08",
    "a hidden member": write_zip([ZipEntry("demo/core.py", b"import os\n")])[: 30 + 12 + 12],
    "an archive": write_zip([ZipEntry("demo/core.py", b"import os\n")]),
}
BASES = {
    "plain": write_zip(entries()),
    "descriptors": write_zip(from_a_pipe()),
    "zip64": write_zip(entries(zip64=True), zip64=True),
    "folders": write_zip(entries({"demo/": b"", **FILES})),
}


@dataclass(frozen=True, slots=True)
class Part:
    """A header of an archive: its offset and length, in bytes."""

    kind: str
    start: int
    fields: dict[str, int]


def parts(data: bytes) -> list[Part]:
    """The headers of a sound archive, found by their signatures, which do not occur in its data."""
    found = []
    position = data.find(b"PK")
    while position >= 0:
        if known := RECORDS.get(data[position : position + 4]):
            found.append(Part(known[0], position, known[1]))
        position = data.find(b"PK", position + 2)
    return found


def mutants() -> Iterator[Mutant]:
    """Fields first, then bytes."""
    chance = random.Random(19)
    for base, data in BASES.items():
        found = parts(data)
        for part in found:
            yield from _fields(base, data, part, chance)
        for part in found:
            yield from _bytes(base, data, part.start, part.kind, chance)
        yield from _bytes(base, data, len(data), "end of the file", chance)
        yield from _cut(base, data, chance)


def _fields(base: str, data: bytes, part: Part, chance: random.Random) -> Iterator[Mutant]:
    position = part.start + 4
    for field, length in part.fields.items():
        old = int.from_bytes(data[position : position + length], "little")
        top = (1 << 8 * length) - 1
        values = {0, 1, top, old + 1, old - 1, old ^ 1 << chance.randrange(8 * length), chance.randrange(top)}
        for value in sorted(values - {old, -1, top + 1}):
            what = f"{base}, byte {part.start}: {old} -> {value}"
            changed = data[:position] + value.to_bytes(length, "little") + data[position + length :]
            yield Mutant(f"{part.kind}: {field}", what, changed)
        position += length


def _bytes(base: str, data: bytes, place: int, kind: str, chance: random.Random) -> Iterator[Mutant]:
    """Bytes put in before a header, once with all offsets after them moved and once not."""
    for name, more in PUT_IN.items():
        where = f"{name} before byte {place} of {base}"
        yield Mutant(f"put in before: {kind}", where, _moved(data, place, more))
        if chance.random() < 0.2:
            yield Mutant("put in, offsets not moved", where, data[:place] + more + data[place:])


def _moved(data: bytes, place: int, more: bytes) -> bytes:
    """With ``more`` at ``place``, and the offsets in directory and end records that lie after it moved."""
    changed = bytearray(data)
    for part in parts(data):
        position = part.start + 4
        for field, length in part.fields.items():
            value = int.from_bytes(data[position : position + length], "little")
            if field in ("offset", "directory offset", "offset of the record") and place <= value < len(data):
                changed[position : position + length] = (value + len(more)).to_bytes(length, "little")
            position += length
        if part.kind == "directory entry" and data[part.start + 42 : part.start + 46] == b"\xff" * 4:
            place64 = part.start + 46 + int.from_bytes(data[part.start + 28 : part.start + 30], "little") + 4 + 16
            value = struct.unpack_from("<Q", data, place64)[0]
            if place <= value:
                struct.pack_into("<Q", changed, place64, value + len(more))
    return bytes(changed[:place]) + more + bytes(changed[place:])


def _cut(base: str, data: bytes, chance: random.Random) -> Iterator[Mutant]:
    for number in range(24):
        start, length = chance.randrange(len(data)), chance.choice((1, 4, 30, 200))
        where = f"{length} bytes at {start} of {base}"
        yield Mutant("bytes cut out", where, data[:start] + data[start + length :])
        yield Mutant(
            "bytes zeroed", where, data[:start] + bytes(len(data[start : start + length])) + data[start + length :]
        )
        yield Mutant("bytes doubled", where, data[: start + length] + data[start:])
        bit = 1 << number % 8
        yield Mutant(
            "a bit flipped", f"byte {start} of {base}", data[:start] + bytes([data[start] ^ bit]) + data[start + 1 :]
        )
        yield Mutant("cut off", f"{base} after {start} bytes", data[:start])
