"""Checked reading of ELF structures from what is known of a file."""

import struct
from collections.abc import Callable
from functools import lru_cache
from typing import Literal, TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, ElfBytes

T = TypeVar("T")
One = TypeVar("One")
Other = TypeVar("Other")
ByteOrder = Literal["little", "big"]
Bits = Literal[32, 64]


@lru_cache
def _compiled(layout: str) -> struct.Struct:
    return struct.Struct(layout)


class Reader:
    """Reads checked, in the byte order and class of one file.

    ``layout`` strings are those of :mod:`struct` without byte order; ``A`` stands for an address, offset or size in the
    file's class (Elf32_Addr, Elf64_Addr). ``field`` names what is read, for messages.
    """

    def __init__(self, view: ElfBytes, bits: Bits = 64, byte_order: ByteOrder = "little"):
        self.view = view
        self.size = view.size
        self.bits = bits
        self.byte_order = byte_order
        self._order = "<" if byte_order == "little" else ">"
        self._address = "I" if bits == 32 else "Q"

    def struct(self, layout: str) -> struct.Struct:
        """``layout`` in the file's byte order and class."""
        return _compiled(self._order + layout.replace("A", self._address))

    def read(self, offset: int, length: int, field: str, *, ahead: int = 0) -> bytes:
        """``length`` bytes at ``offset``. When they are unknown, up to ``ahead`` bytes are requested instead.

        Raises FormatError when the file ends before, and BytesNeeded.
        """
        if offset + length > self.size:
            raise FormatError(
                f"{field} is at bytes {offset:#x} to {offset + length:#x}",
                expected=f"a place inside the file of {self.size:#x} bytes",
                hint="the ELF file is cut off or damaged",
            )
        try:
            return self.view.read(offset, length)
        except BytesNeeded as needed:
            last = needed.ranges[-1]
            if last.end == offset + length:
                end = min(max(last.end, offset + ahead), self.size)
                raise BytesNeeded([*needed.ranges[:-1], ByteRange(last.offset, end - last.offset)]) from None
            raise

    def unpack(self, layout: str, offset: int, field: str, *, ahead: int = 0) -> tuple[int, ...]:
        """The integers of a structure. Raises as :meth:`read` does."""
        compiled = self.struct(layout)
        return compiled.unpack(self.read(offset, compiled.size, field, ahead=ahead))


def ask_together(*parts: Callable[[], T]) -> list[T]:
    """What each of ``parts`` returns. When some need bytes, one BytesNeeded asks for those of all: fewer rounds."""
    results: list[T] = []
    needed: list[ByteRange] = []
    for part in parts:
        try:
            results.append(part())
        except BytesNeeded as missing:
            needed.extend(missing.ranges)
    if needed:
        raise BytesNeeded(needed)
    return results


def ask_both(one: Callable[[], One], other: Callable[[], Other]) -> tuple[One, Other]:
    """As :func:`ask_together`, for two of different kinds."""
    first: list[One] = []
    second: list[Other] = []
    ask_together(lambda: first.append(one()), lambda: second.append(other()))
    return first[0], second[0]


def check_entry_size(field: str, value: int, expected: int) -> None:
    """Raise FormatError unless a table's entries have the size that the gABI gives them, in bytes."""
    if value != expected:
        raise FormatError(f"{field} is {value}", expected=f"{expected} for this class")


def check_count(field: str, value: int, limit: int) -> None:
    """Raise FormatError when a count is beyond what any real file has; ``limit`` bounds time and memory."""
    if value > limit:
        raise FormatError(f"{field} is {value}", expected=f"at most {limit}")
