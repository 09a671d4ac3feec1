"""The DLLs that a PE file imports, at its start or delayed: names as the file has them.

Source: Microsoft, PE Format, "The .idata Section" and "Delay-Load Import Tables", November 2026.
"""

import struct
from collections.abc import Sequence

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, ElfBytes
from wheel_checks.formats.pe.header import PeHeader, read_bytes

MOST_IMPORTS = 1_024  # DLLs; real files have some dozens

_DESCRIPTOR = struct.Struct("<5I")  # lookup table, time stamp, forwarder chain, name, address table
_DELAY_DESCRIPTOR = struct.Struct("<8I")  # attributes, name, module handle, address table, ...
_RELATIVE = 1  # attribute of a delay descriptor: what it holds are relative addresses; old ones hold absolute ones
_LONGEST_NAME = 256  # bytes
_AT_ONCE = 32  # descriptors read together


def read_imports(view: ElfBytes, header: PeHeader) -> tuple[str, ...]:
    """The names of imported DLLs, then of those that load when they are first called, without repetition.

    The tables end as they do for the loader: with a descriptor that has no name or no address table, whatever size
    the header states. Raises FormatError for tables or names outside the file, ``MOST_IMPORTS`` descriptors or more,
    names without end or with other characters than those of a file; BytesNeeded, for all names together.
    """
    needed: list[ByteRange] = []
    names: list[int] = []
    for read in (_imports, _delay_imports):
        try:
            names += read(view, header)
        except BytesNeeded as missing:
            needed += missing.ranges
    found: list[str] = []
    for address in dict.fromkeys(names):
        try:
            found.append(_name(view, header, address))
        except BytesNeeded as missing:
            needed += missing.ranges
    if needed:
        raise BytesNeeded(needed)
    return tuple(dict.fromkeys(found))


def _imports(view: ElfBytes, header: PeHeader) -> list[int]:
    rows = _rows(view, header, header.imports, _DESCRIPTOR, (3, 4), "the import table")
    return [row[3] for row in rows]


def _delay_imports(view: ElfBytes, header: PeHeader) -> list[int]:
    rows = _rows(view, header, header.delay_imports, _DELAY_DESCRIPTOR, (1,), "the delay import table")
    return [row[1] if row[0] & _RELATIVE else row[1] - header.base for row in rows]


def _rows(
    view: ElfBytes, header: PeHeader, address: int, layout: struct.Struct, required: Sequence[int], field: str
) -> list[tuple[int, ...]]:
    """The descriptors from ``address`` on, to the first that lacks one of the ``required`` fields."""
    rows: list[tuple[int, ...]] = []
    if not address:
        return rows
    offset, room = header.place(address, field)
    while len(rows) < MOST_IMPORTS:
        start = len(rows) * layout.size
        count = min(_AT_ONCE, (room - start) // layout.size)
        if count <= 0:
            raise FormatError(f"{field} reaches the end of its section", expected="a descriptor of zeros at its end")
        for row in layout.iter_unpack(read_bytes(view, offset + start, count * layout.size, field)):
            if not all(row[number] for number in required):
                return rows
            rows.append(row)
    raise FormatError(f"{field} has {MOST_IMPORTS} descriptors or more", expected="some dozens")


def _name(view: ElfBytes, header: PeHeader, address: int) -> str:
    offset, room = header.place(address, "the name of an imported DLL")
    reach = min(room, _LONGEST_NAME)
    name, zero, _ = read_bytes(view, offset, reach, "the name of an imported DLL").partition(b"\0")
    if not zero:
        raise FormatError(f"the name of a DLL at {offset:#x} has no end", expected=f"a zero byte in {reach} bytes")
    if not name or any(not 0x20 <= byte < 0x7F for byte in name):
        raise FormatError(f"the name of a DLL at {offset:#x} is {name[:40]!r}", expected="the name of a file, in ASCII")
    return name.decode("ascii")
