"""The strings of .dynstr, among which is all that a library needs, found by as few section headers as will do."""

from __future__ import annotations

from wheel_checks.errors import FormatError
from wheel_checks.facts.elf.member import PartialMember
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded
from wheel_checks.formats.elf.header import read_header, table_sizes
from wheel_checks.formats.elf.sections import SHT_DYNAMIC, SHT_DYNSYM, read_kind_and_link, read_place
from wheel_checks.model import Unavailable

_FIRST_SECTIONS = 48  # include the dynamic symbols, near the front; files have about 35


def names_at(view: PartialMember, place: tuple[int, int] | None) -> tuple[str, ...] | Unavailable:
    """The dynamic strings at ``place`` that may be libraries, search paths, or versions of glibc's and libstdc++'s
    symbols. Raises BytesNeeded.
    """
    if place is None:
        return Unavailable("the section headers list no dynamic symbols")
    # No mangled name of C++ has a dot before a word or a slash in it.
    strings = view.read(*place).split(b"\0")
    return tuple(
        s.decode("utf-8", "backslashreplace")
        for s in strings
        if b".so" in s or b"/" in s or b"ORIGIN" in s or b"GLIBC" in s or b"CXXABI_" in s
    )


def place_of_strings(view: PartialMember) -> tuple[int, int] | None:
    """Offset and size of the string table of dynamic symbols and dynamic section, by as few section headers as will do.

    Names of sections are not read: strip and patchelf may leave them far from everything else. Raises BytesNeeded and
    FormatError.
    """
    header, reader = read_header(view)
    count = table_sizes(reader, header).sections
    unknown: list[ByteRange] = []
    for number in range(min(count, _FIRST_SECTIONS)):
        try:
            kind, link = read_kind_and_link(reader, header, number)
        except BytesNeeded as needed:
            unknown += needed.ranges
            continue
        if kind in (SHT_DYNSYM, SHT_DYNAMIC) and link < count:
            _, offset, length = read_place(reader, header, link)
            if offset + length > view.size:
                raise FormatError(f"section {link} ends at {offset + length:#x}", expected=f"at most {view.size:#x}")
            return offset, length
    if unknown:
        raise BytesNeeded(unknown)
    return None
