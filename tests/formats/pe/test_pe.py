"""PE files: their sections and imports, and that wrong or endless tables are refused."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.pe import ARM64, I386, Pe
from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import BytesNeeded, KnownRegions, WholeFile
from wheel_checks.formats.pe.header import PeHeader, read_header
from wheel_checks.formats.pe.imports import MOST_IMPORTS, read_imports

SAMPLE = Pe(
    imports=("KERNEL32.dll", "torch_cpu.dll"),
    delay_imports=("cudart64_13.dll",),
    sections={".nv_fatbin": b"code", ".empty": b""},
)


def read(data: bytes) -> tuple[PeHeader, tuple[str, ...]]:
    """Header and imports of a whole file."""
    header = read_header(WholeFile(data))
    return header, read_imports(WholeFile(data), header)


def test_machine_sections_and_imports() -> None:
    header, imports = read(SAMPLE.build().data)

    assert header.machine == "x86_64"
    sizes = {section.name: section.size for section in header.sections}
    assert list(sizes) == [".text", ".rdata", ".data", ".nv_fatb", ".empty"]
    assert (sizes[".nv_fatb"], sizes[".empty"]) == (512, 0)
    assert imports == ("KERNEL32.dll", "torch_cpu.dll", "cudart64_13.dll")


@pytest.mark.parametrize(
    ("pe", "machine", "expected"),
    [
        (Pe(), "x86_64", ()),
        (Pe(machine=ARM64, imports=("a.dll",)), "aarch64", ("a.dll",)),
        (Pe(machine=0xA641, imports=("a.dll",)), "ARM64EC", ("a.dll",)),
        (Pe(machine=0x5064, imports=("a.dll",)), "0x5064", ("a.dll",)),
        (Pe(machine=I386, bits=32, imports=("a.dll",), delay_imports=("b.dll",)), "x86", ("a.dll", "b.dll")),
        (Pe(machine=I386, bits=32, delay_imports=("b.dll",), absolute=True), "x86", ("b.dll",)),
        (Pe(imports=("a.dll", "b.dll", "a.dll")), "x86_64", ("a.dll", "b.dll")),
        (Pe(imports=tuple(f"{n}.dll" for n in range(100))), "x86_64", tuple(f"{n}.dll" for n in range(100))),
    ],
    ids=["no imports", "arm64", "ARM64EC", "RISC-V", "32 bits", "old delay table", "twice", "hundred"],
)
def test_kinds_of_files(pe: Pe, machine: str, expected: tuple[str, ...]) -> None:
    header, imports = read(pe.build().data)

    assert (header.machine, imports) == (machine, expected)


def test_long_section_names_come_from_the_string_table() -> None:
    header, _ = read(Pe(sections={".debug_info": b"a", ".nv_fatbin": b"b"}, strings=True).build().data)

    assert [section.name for section in header.sections[3:]] == [".debug_info", ".nv_fatbin"]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"e_lfanew": 2**32 - 1}, "e_lfanew is 0xffffffff"),
        ({"e_lfanew": 0x40}, "not the signature PE"),
        ({"e_lfanew": 0xFFF0}, "the COFF header is at bytes"),
        ({"NumberOfSections": 0xFFFF}, "NumberOfSections is 65535"),
        ({"NumberOfSections": 2_000}, "section table is at bytes"),
        ({"SizeOfOptionalHeader": 0xFFFF}, "SizeOfOptionalHeader is 65535"),
        ({"SizeOfOptionalHeader": 20}, "optional header has the magic"),
        ({"SizeOfOptionalHeader": 120}, "NumberOfRvaAndSizes is 16"),
        ({"magic": 0x107}, "optional header has the magic 0x107"),
        ({".rdata VirtualAddress": 0x1000}, "section .rdata is at address 0x1000"),
        ({".data SizeOfRawData": 2**31}, "section .data ends at"),
        ({".data at": 0x201}, "PointerToRawData of .data is 0x201"),
        ({"imports": 0x7FFFFFFF}, "the import table is at address 0x7fffffff"),
        ({"delay_imports": 0x7FFFFFFF}, "the delay import table is at address"),
        ({"first import name": 0x7FFFFFFF}, "the name of an imported DLL is at address"),
        ({"first import name": 0x1000}, "the name of a DLL"),
    ],
)
def test_lies_are_named(fields: Mapping[str, int], said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read(SAMPLE.build().with_fields(fields))


@pytest.mark.parametrize(
    ("pe", "said"),
    [
        (Pe(imports=("a.dll", "\xff\xfe.dll")), "expected the name of a file|is b"),
        (Pe(imports=("x" * 300,)), "has no end"),
        (Pe(imports=tuple(f"{n}.dll" for n in range(MOST_IMPORTS))), f"has {MOST_IMPORTS} descriptors or more"),
    ],
    ids=["not ASCII", "without end", "too many"],
)
def test_names_and_counts_are_bounded(pe: Pe, said: str) -> None:
    with pytest.raises(FormatError, match=said):
        read(pe.build().data)


def test_a_table_without_an_end_stops_at_its_section() -> None:
    built = Pe(imports=("a.dll",), code=b"\xff" * 512).build()

    with pytest.raises(FormatError, match="the import table reaches the end of its section"):
        read(built.with_fields({"imports": 0x1000}))


def test_a_section_name_outside_the_file() -> None:
    built = Pe(sections={".debug_info": b"a"}, strings=True).build()

    with pytest.raises(FormatError, match="a section's name is at"):
        read(built.with_fields({".debug_info name": int.from_bytes(b"/9999999", "little")}))


def test_every_cut_file_is_an_error() -> None:
    data = SAMPLE.build().data
    for length in range(0, 0x800, 7):
        with pytest.raises(FormatError):
            read(data[:length])


def test_unknown_bytes_are_asked_for_together() -> None:
    data = SAMPLE.build().data
    known = KnownRegions(len(data))
    rounds = 0
    while True:
        try:
            header = read_header(known)
            imports = read_imports(known, header)
            break
        except BytesNeeded as needed:
            rounds += 1
            for offset, length in needed.ranges:
                known.add(offset, data[offset : offset + length])

    assert (imports, rounds) == (read(data)[1], 4)


@settings(max_examples=300)
@given(st.data())
def test_any_damage_is_an_error_or_an_answer(data: st.DataObject) -> None:
    damaged = bytearray(SAMPLE.build().data)
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))

    with suppress(FormatError):
        _, imports = read(bytes(damaged))
        assert len(imports) <= 2 * MOST_IMPORTS
