"""Writes the tables that wheel_checks/formats/hash_table.py reads and describes."""

from __future__ import annotations

import json
import sys
import zlib
from array import array
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from wheel_checks.formats.hash_table import HEAD, MAGIC, WORD


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry to write: what describes it, its sets by name, and the number of the entry that it is built upon.

    ``base`` is less than the entry's own number, or -1.
    """

    description: Mapping[str, Any]
    sets: Mapping[str, Collection[int]]
    base: int = -1


def write(table: Mapping[str, Any], entries: Sequence[Entry]) -> bytes:
    """The bytes of a table, the same for the same entries. ``table`` describes it as a whole."""
    rows: list[dict[str, Any]] = []
    blocks: list[bytes] = []
    offset = 0
    for entry in entries:
        before = entries[entry.base].sets if entry.base >= 0 else {}
        parts, described = [], []
        for name, hashes in sorted(entry.sets.items()):
            change = sorted(set(hashes) ^ set(before.get(name, ())))
            planes = _pack(change)
            parts += planes
            described.append([name, len(change), [len(plane) for plane in planes]])
        block = b"".join(parts)
        rows.append(
            {"about": entry.description, "base": entry.base, "offset": offset, "length": len(block)}
            | {"check": zlib.crc32(block), "sets": described}
        )
        blocks.append(block)
        offset += len(block)
    description = json.dumps({"table": table, "entries": rows}, separators=(",", ":"), sort_keys=True)
    packed = zlib.compress(description.encode(), 9)
    return b"".join([MAGIC, HEAD.pack(len(packed), zlib.crc32(packed)), packed, *blocks])


def _pack(hashes: Sequence[int]) -> list[bytes]:
    """Four planes of the distances between sorted hashes, the lowest bytes first."""
    distances = array("I", [one - before for before, one in pairwise([0, *hashes])])
    if sys.byteorder == "big":
        distances.byteswap()
    data = distances.tobytes()
    planes = [data[plane::WORD] for plane in range(WORD)]
    return [min(plane, zlib.compress(plane, 9), key=len) for plane in planes]
