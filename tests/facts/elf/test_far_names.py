"""Names of sections that lie far from their headers, as lld writes them, or whose bytes the tail leaves uncertain."""

from __future__ import annotations

import random
import struct

import pytest

from tests.support.elf import Elf
from tests.support.wheel_facts import MemorySource
from tests.support.zips import ZipEntry, read_zip, write_zip
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.member_elf import MemberElf
from wheel_checks.facts.elf.reading import read_member_elfs
from wheel_checks.formats.elf.file import Part
from wheel_checks.formats.elf.sections import SHT_DYNAMIC, Sections

_SHSTRTAB = 3  # SHT_STRTAB, with which the builder writes .dynstr and, last, .shstrtab


def symbols(count: int) -> bytes:
    """Something like .symtab: numbers of many sizes, no text."""
    chance = random.Random(3)
    return b"".join(
        struct.pack(
            "<IBBHQQ", chance.randrange(1 << 22), 0x12, 0, 14, chance.randrange(1 << 28), chance.randrange(4096)
        )
        for _ in range(count)
    )


def names_of_symbols(size: int) -> bytes:
    """Something like .strtab: megabytes of mangled names."""
    chance = random.Random(4)
    words = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=chance.randint(3, 12))) for _ in range(4000)]
    names = bytearray(b"\0")
    while len(names) < size:
        parts = chance.choices(words, k=chance.randint(1, 6))
        names += b"_ZN" + b"".join(f"{len(part)}{part}".encode() for part in parts) + b"Ev\0"
    return bytes(names)


def like_lld(behind: int, *, gpu_code: bool = True) -> bytes:
    """A library with megabytes of symbols, its names of sections, ``behind`` bytes of symbol names, and the headers."""
    contents = {".rodata": random.Random(5).randbytes(600_000)} | ({".nv_fatbin": bytes(64)} if gpu_code else {})
    built = Elf(contents=contents, soname="libexample.so").build()
    start = built.value("e_shoff")
    head, table = built.data[:start] + symbols(60_000), bytearray(built.data[start:])
    own = struct.unpack_from("<H", built.data, 62)[0] * 64
    offset, size = struct.unpack_from("<QQ", table, own + 24)
    names = built.data[offset : offset + size]
    struct.pack_into("<Q", table, own + 24, len(head))
    data = bytearray(head + names + names_of_symbols(behind) + table)
    struct.pack_into("<Q", data, 40, len(data) - len(table))
    return bytes(data)


def read(data: bytes) -> tuple[MemberElf, int]:
    """The facts of the library as the only member of a remote archive, and its size there."""
    archive = write_zip([ZipEntry("libexample.so", data)])
    end, members, _ = read_zip(archive)
    source = MemorySource(archive, remote=True)
    (found,) = read_member_elfs(source, Archive(end, members, ()), members, {Part.SECTIONS})
    return found, len(archive)


@pytest.mark.parametrize("behind", [3_000_000, 9_000_000])
@pytest.mark.parametrize("gpu_code", [True, False])
def test_names_before_megabytes_of_symbol_names(behind: int, gpu_code: bool) -> None:
    found, size = read(like_lld(behind, gpu_code=gpu_code))

    assert not isinstance(found.facts, Exception)
    sections = found.facts.sections  # type: ignore[union-attr]  # an Unavailable has none, and fails the test
    assert isinstance(sections, Sections)
    assert bool(sections.named(".nv_fatbin")) is gpu_code
    assert [section.name for section in sections.headers if section.type_number == SHT_DYNAMIC] == [".dynamic"]
    assert found.bytes_read < size * 0.6


def test_names_that_are_not_where_the_headers_say_are_not_taken() -> None:
    data = like_lld(3_000_000).replace(b"\0.shstrtab\0", b"\0.shstrtub\0")

    found, _ = read(data)

    assert found.facts.missing == {Part.SECTIONS}  # type: ignore[union-attr]
