"""Finds entries of fat binaries in a part of a library whose offset is unknown, and some of whose bytes are.

A container is recognised by its magic number, version and header size, 64 bits in all; an entry of a container that
began before the part, by over 100 bits that all compilers write. Entries are then followed by their sizes to the end of
the part. Only certain bytes are used.
"""

from __future__ import annotations

import re
import struct
from collections import Counter

from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu.fatbin import GpuCode, GpuEntry, best_statement, newest_isa, read_entry
from wheel_checks.formats.gpu.part import Part

_CONTAINER_SIZE, _ENTRY_SIZE = 16, 64
# A container: magic, version 1, a header of 16 bytes. An entry, as nvcc 11 to 13 write it: PTX or ELF, attributes
# 0x0101, a header of less than 256 bytes, a payload of less than 4 GiB and a multiple of 8, up to 3 GiB of it
# compressed, options after the header or none, versions, an architecture, no identifier, flags of 64 bits on Linux,
# and zeros.
_START = re.compile(
    rb"(?P<container>\x50\xed\x55\xba\x01\x00\x10\x00)"
    rb"|[\x01\x02]\0\x01\x01[\x40-\xff]\0\0\0[\0\x08\x10-\xf8]...\0\0\0\0....[\0\x40]\0\0\0.[\0-\x20].[\0-\x20]..\0\0"
    rb"\0{8}\x11..[\0-\x03]\0{4}\0{8}",
    re.DOTALL,
)
_LONGEST = 1 << 30  # bytes of a container whose beginning was not seen


def sample_fatbins(part: Part) -> GpuCode:
    """The code whose headers are in ``part``, as "sampled", with ``containers`` seen whole; in linear time."""
    counts: Counter[str] = Counter()
    containers: Counter[frozenset[str]] = Counter()
    isa: set[tuple[str, str]] = set()
    toolkits: Counter[str] = Counter()
    at = 0
    while found := _START.search(part.data, at):
        start, size = found.start(), _LONGEST
        at = start + 1
        if found["container"]:
            header = part.known(start, start + _CONTAINER_SIZE)
            if header is None:
                continue
            start += _CONTAINER_SIZE
            (size,) = struct.unpack_from("<Q", header, 8)
        entries, end = _follow(part, start, size, strictly=not found["container"])
        labels = [entry.label for entry in entries]
        counts.update(labels)
        isa.update((entry.label, entry.ptx_isa) for entry in entries if entry.ptx_isa)
        if labels and end == start + size:
            containers[frozenset(labels)] += 1
        if statements := {entry.toolkit for entry in entries if entry.kind in ("elf", "ptx")}:
            toolkits[best_statement(statements)] += 1
        at = max(at, min(end, len(part.data)))
    return GpuCode(dict(counts), "sampled", dict(containers), newest_isa(isa), dict(toolkits))


def _follow(part: Part, at: int, left: int, *, strictly: bool) -> tuple[list[GpuEntry], int]:
    """The entries from ``at`` on, as far as certain bytes show, and the offset of the next entry or of the end.

    ``strictly`` accepts only entries that look like the output of compilers, since the container's end is unknown.
    """
    entries = []
    while left > 0 and (header := part.known(at, at + _ENTRY_SIZE)) is not None:
        try:
            entry, length = read_entry(header, 0, left)
        except FormatError:
            break
        if strictly and not _START.match(header):
            break
        entries.append(entry)
        at += length
        left -= length
    return entries, at
