"""Mach-O files and universal binaries: the machines that they are for, and the oldest macOS of each.

Source: <mach-o/loader.h> and <mach-o/fat.h> of Apple's cctools (LC_BUILD_VERSION, LC_VERSION_MIN_MACOSX), 2026-11.
"""

import struct
from dataclasses import dataclass

from wheel_checks.errors import FormatError

_THIN = {
    b"\xcf\xfa\xed\xfe": ("<", 32),
    b"\xce\xfa\xed\xfe": ("<", 28),
    b"\xfe\xed\xfa\xcf": (">", 32),
    b"\xfe\xed\xfa\xce": (">", 28),
}
_FAT = {b"\xca\xfe\xba\xbe": struct.Struct(">iiIII"), b"\xca\xfe\xba\xbf": struct.Struct(">iiQQII")}
_MOST_SLICES = 19  # Java classes begin like a universal binary, and have 43 or more in this place
_MACHINES = {0x01000007: "x86_64", 0x0100000C: "arm64", 7: "i386", 12: "arm", 18: "ppc", 0x01000012: "ppc64"}
_MOST_COMMANDS = 10_000
_VERSION_MIN_MACOSX, _BUILD_VERSION = 0x24, 0x32
_PLATFORM_MACOS = 1


@dataclass(frozen=True, slots=True)
class MachSlice:
    """The part of a file for one machine ("arm64", "x86_64", ...).

    ``macos`` is the oldest macOS that it is built for, None where its load commands were not read or state none.
    """

    machine: str
    macos: tuple[int, int] | None = None


def read_mach_slices(head: bytes) -> tuple[MachSlice, ...]:
    """The slices of a file that starts with ``head``; the load commands as far as these bytes have them.

    Raises FormatError for what is not a Mach-O file.
    """
    if head[:4] in _THIN:
        return (_slice(head),)
    row = _FAT.get(head[:4])
    count = int.from_bytes(head[4:8], "big")
    if row is None or not 0 < count <= _MOST_SLICES or len(head) < 8 + count * row.size:
        raise FormatError("the file is not a Mach-O file", expected="its magic number, and at most 19 slices")
    found = []
    for number in range(count):
        processor, _, offset, *_ = row.unpack_from(head, 8 + number * row.size)
        own = head[offset : offset + len(head)] if offset < len(head) else b""
        machine = _MACHINES.get(processor, f"{processor:#x}")
        found.append(_slice(own) if own[:4] in _THIN else MachSlice(machine))
    return tuple(found)


def _slice(data: bytes) -> MachSlice:
    order, size = _THIN[data[:4]]
    if len(data) < size:
        raise FormatError("the file ends inside its Mach-O header", expected=f"{size} bytes")
    processor, _, _, count = struct.unpack_from(f"{order}iiII", data, 4)
    machine, offset = _MACHINES.get(processor, f"{processor:#x}"), size
    for _ in range(min(count, _MOST_COMMANDS)):
        if offset + 16 > len(data):
            break
        command, length, first, second = struct.unpack_from(f"{order}IIII", data, offset)
        if command == _VERSION_MIN_MACOSX:
            return MachSlice(machine, _version(first))
        if command == _BUILD_VERSION and first == _PLATFORM_MACOS:
            return MachSlice(machine, _version(second))
        offset += max(8, length)
    return MachSlice(machine)


def _version(number: int) -> tuple[int, int]:
    return number >> 16, number >> 8 & 0xFF
