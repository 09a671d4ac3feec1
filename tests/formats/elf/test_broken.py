"""Corrupt ELF files: each is refused by the name of the field, its value and the expected one."""

from __future__ import annotations

import struct
import tracemalloc
from collections.abc import Mapping
from dataclasses import replace

import pytest

from tests.support.elf import Elf, Symbol
from tests.support.elf_samples import TORCH_LIKE, Ranges
from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import MAX_ROUNDS, Part, read_elf, read_elf_by_ranges
from wheel_checks.formats.elf.strings import MAX_STRING

LIBRARY = replace(TORCH_LIKE, gap=0, interpreter="/lib/ld.so")
BUILT = LIBRARY.build()
HUGE = 2**60


def refusal(data: bytes) -> str:
    """The sentence with which a file is refused."""
    with pytest.raises(FormatError) as error:
        read_elf(WholeFile(data), list(Part))
    return str(error.value)


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"EI_CLASS": 3}, "EI_CLASS is 3; expected 1 or 2"),
        ({"EI_DATA": 0}, "EI_DATA is 0; expected 1 or 2"),
        ({"EI_VERSION": 2}, "EI_VERSION is 2; expected 1"),
        ({"e_version": 7}, "e_version is 7; expected 1"),
        ({"e_phoff": HUGE}, "the program header table at e_phoff is at bytes 0x1000000000000000"),
        ({"e_phentsize": 32}, "e_phentsize is 32; expected 56"),
        ({"e_phnum": 5000}, "e_phnum is 5000; expected at most 4096"),
        ({"e_phnum": 0xFFFF, "sh_info[]": 2**32 - 1}, "e_phnum is 4294967295; expected at most 4096"),
        ({"e_shoff": HUGE}, "the section header table at e_shoff is at bytes 0x1000000000000000"),
        ({"e_shoff": 0}, "e_shoff is 0; expected the offset"),
        ({"e_shentsize": 0}, "e_shentsize is 0; expected 64"),
        ({"e_shnum": 0, "sh_size[]": HUGE}, f"e_shnum is {HUGE}; expected at most 100000"),
        ({"e_shnum": 0xFF00}, "the section header table at e_shoff is at"),
        ({"e_shstrndx": 500}, "e_shstrndx is 500; expected less than"),
        ({"sh_offset[.nv_fatbin]": HUGE}, "sh_offset and sh_size of section 8 (.nv_fatbin) are 0x1000000000000000"),
        ({"sh_size[.dynsym]": HUGE}, "sh_offset and sh_size of section 3 (.dynsym) are"),
        ({"sh_name[.dynsym]": 10_000}, "sh_name of section 3 is 10000; expected less than"),
        ({"sh_size[.shstrtab]": HUGE}, "sh_size of the section with the names is"),
        (
            {"p_filesz[LOAD0]": HUGE},
            "p_offset and p_filesz of program header 0 (PT_LOAD) are 0x0 and 0x1000000000000000",
        ),
        ({"p_memsz[LOAD1]": 1}, "p_filesz of program header 1 (PT_LOAD) is"),
        ({"p_align[LOAD0]": 3}, "p_align of program header 0 (PT_LOAD) is 0x3; expected a power of two"),
        (
            {"p_vaddr[LOAD0]": 1},
            "p_vaddr and p_offset of program header 0 (PT_LOAD) are 0x1 and 0x0; expected the same",
        ),
        ({"p_memsz[LOAD0]": HUGE}, "program header 1 begins at address"),
        ({"p_vaddr[DYNAMIC]": 0x5000_0000}, "p_vaddr of PT_DYNAMIC points to"),
        ({"p_offset[DYNAMIC]": 64}, "p_offset of PT_DYNAMIC is 0x40; expected"),
        ({"p_filesz[DYNAMIC]": HUGE}, "p_vaddr of PT_DYNAMIC points to 1152921504606846976 bytes"),
        ({"p_filesz[DYNAMIC]": 32}, "PT_DYNAMIC of 0x20 bytes has no end; expected DT_NULL"),
        ({"p_offset[INTERP]": HUGE}, "PT_INTERP is at bytes"),
        ({"p_filesz[INTERP]": 2**40}, "p_filesz of PT_INTERP is 1099511627776; expected at most 4096"),
        ({"p_filesz[INTERP]": 5}, "PT_INTERP is b'/lib/'; expected a path that ends with a zero byte"),
        ({"DT_STRSZ": HUGE}, "DT_STRSZ is 1152921504606846976; expected at most"),
        ({"DT_STRTAB": HUGE}, "DT_STRTAB points to"),
        ({"d_tag[STRTAB]": 0x6000_0000}, "the dynamic section has no DT_STRTAB"),
        ({"d_tag[STRSZ]": 0x6000_0000}, "the dynamic section has no DT_STRSZ"),
        ({"DT_NEEDED[1]": 5000}, "DT_NEEDED is 5000; expected less than"),
        ({"DT_NEEDED[1]": BUILT.value("DT_STRSZ")}, "expected less than"),
        ({"symoffset": 9}, "a bucket of DT_GNU_HASH is 3; expected 0, or at least symoffset, 9"),
        ({"DT_SONAME": HUGE}, "DT_SONAME is 1152921504606846976; expected less than"),
        ({"DT_SYMENT": 16}, "DT_SYMENT is 16; expected 24"),
        ({"DT_SYMTAB": 0}, "st_name is"),
        ({"DT_SYMTAB": HUGE}, "DT_SYMTAB points to"),
        ({"DT_VERNEEDNUM": HUGE}, "DT_VERNEEDNUM is 1152921504606846976; expected at most 32767"),
        (
            {"DT_VERNEEDNUM": 3},
            "record 1 of DT_VERNEED says that the next one is 0 bytes away; expected another record",
        ),
        ({"DT_VERNEEDNUM": 1}, "record 0 of DT_VERNEED says that the next one is 48 bytes away; expected 0"),
        ({"DT_VERNEED": HUGE}, "DT_VERNEED points to"),
        ({"vn_version[0]": 2}, "vn_version is 2; expected 1"),
        ({"vn_cnt[0]": 0xFFFF}, "record 1 of vn_aux of DT_VERNEED says that the next one is 0 bytes away"),
        ({"vn_file[1]": 2**31}, "vn_file is 2147483648; expected less than"),
        ({"vn_aux[0]": 2**32 - 1}, "record 0 of vn_aux of DT_VERNEED lies 0xffffffff bytes after its start"),
        ({"vn_next[0]": 2**32 - 16}, "record 1 of DT_VERNEED lies 0xfffffff0 bytes after its start"),
        ({"vn_next[0]": 4}, "record 0 of DT_VERNEED is 4 bytes long; expected at least 16"),
        ({"vna_next[0]": 2**32 - 16}, "record 1 of vn_aux of DT_VERNEED lies 0x100000000 bytes after"),
        ({"vna_name[0]": 9999}, "vna_name is 9999; expected less than"),
        ({"vna_hash[0]": 1}, "vna_hash is 0x1; expected 0x6969197, the hash of 'GLIBC_2.17'"),
        ({"DT_VERDEFNUM": 0}, "DT_VERDEFNUM is 0; expected the number of records at DT_VERDEF"),
        ({"vd_version[1]": 0}, "vd_version is 0; expected 1"),
        ({"vd_cnt[0]": 0}, "vd_cnt is 0; expected at least"),
        ({"vd_hash[2]": 0}, "vd_hash is 0x0; expected"),
        ({"vda_name[3]": 9999}, "vda_name is 9999; expected less than"),
        ({"versym[3]": 77}, "the version of dynamic symbol 3 is 77; expected the index of a version"),
        ({"DT_VERSYM": HUGE}, "DT_VERSYM points to"),
        ({"st_name[2]": 2**32 - 1}, "st_name is 4294967295; expected less than"),
        ({"DT_GNU_HASH": HUGE}, "DT_GNU_HASH points to"),
        ({"nbuckets": 2**32 - 1}, "the number of buckets of DT_GNU_HASH is 4294967295; expected at most"),
        ({"bloom_size": 2**32 - 1}, "the buckets of DT_GNU_HASH points to"),
        ({"bucket[0]": 2**32 - 1}, "a chain of DT_GNU_HASH points to"),
    ],
    ids=lambda value: "+".join(value) if isinstance(value, Mapping) else "",
)
def test_a_corrupt_field_is_named(fields: dict[str, int], message: str) -> None:
    assert message in refusal(BUILT.with_fields(fields))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "the file has 0 bytes; expected an ELF header"),
        (b"PK\3\4" + bytes(60), "e_ident starts with 50 4b 03 04; expected 7f 45 4c 46"),
        (b"\x7fELF\2\1\1" + bytes(20), "the ELF header is at bytes 0x10 to 0x40; expected a place inside the file"),
    ],
)
def test_what_is_no_elf_file(data: bytes, message: str) -> None:
    assert message in refusal(data)


@pytest.mark.parametrize("cut", [1, 100, 1000])
def test_a_file_that_is_cut_off(cut: int) -> None:
    assert "the ELF file is cut off or damaged" in refusal(BUILT.data[:-cut])


def test_sysv_hash_table_with_too_many_symbols() -> None:
    built = Elf(symbols=(Symbol("f"),), hash="sysv").build()
    assert "the number of dynamic symbols is 4294967295; expected at most" in refusal(
        built.with_fields({"nchain": 2**32 - 1})
    )


def test_an_endless_string() -> None:
    built = Elf(contents={"filler": b"x" * (2 * MAX_STRING)}, needed=("libc.so.6",)).build()
    start, _ = built.regions["filler"]
    data = built.with_fields({"DT_STRTAB": start, "DT_STRSZ": 2 * MAX_STRING, "DT_NEEDED[0]": 3})
    assert refusal(data) == (
        "the string of DT_NEEDED at 3 of DT_STRTAB has no end; expected a zero byte within 65536 bytes"
    )


def test_strings_that_overlap_do_not_fill_the_memory() -> None:
    """4,000 names of 60,000 bytes that share their bytes would take 240 MB."""
    names = 4000
    built = Elf(
        contents={"filler": b"x" * 60_000 + b"\0"},
        symbols=tuple(Symbol(f"s{number}") for number in range(names)),
        hash="sysv",
    ).build()
    start, size = built.regions["filler"]
    fields = {f"st_name[{number}]": number for number in range(1, names)}
    data = built.with_fields({"DT_STRTAB": start, "DT_STRSZ": size, **fields})
    tracemalloc.start()
    assert refusal(data).startswith("the strings of DT_STRTAB overlap")
    assert tracemalloc.get_traced_memory()[1] < 10_000_000
    tracemalloc.stop()


def test_a_dynamic_section_without_end_is_given_up() -> None:
    built = Elf(contents={"filler": b"\1" * 200_000}).build()
    start, size = built.regions["filler"]
    fields = {"p_offset[DYNAMIC]": start, "p_vaddr[DYNAMIC]": start, "p_filesz[DYNAMIC]": size}
    assert "has no end; expected DT_NULL within 4096 entries" in refusal(built.with_fields(fields))


def test_a_hash_chain_without_end() -> None:
    built = replace(LIBRARY, gap=8000).build()
    into_the_gap = built.value("symoffset") + 1800
    assert refusal(built.with_fields({"bucket[0]": into_the_gap})) == (
        "the last chain of DT_GNU_HASH has no end; expected a word whose lowest bit is set"
    )


def test_version_records_that_share_their_chains_are_given_up() -> None:
    """The records of all libraries linked to one chain: 80,000 versions in 13 KB."""
    count = 400
    built = Elf(needs={f"lib{number}.so": (f"V{number}",) for number in range(count)}).build()
    chain = {f"vna_next[{number}]": 32 for number in range(count - 1)}
    counts = {f"vn_cnt[{number}]": count - number for number in range(count)}
    assert refusal(built.with_fields(chain | counts)) == (
        "vn_aux of DT_VERNEED has too many records; expected at most 32767 versions in all"
    )


def test_records_scattered_over_the_file_are_not_followed_for_ever_by_ranges() -> None:
    count, distance = 2 * MAX_ROUNDS, 10_000
    record = struct.Struct("<HHIII")
    places = [record.pack(1, 0, 0, 16, distance * (number < count - 1)) for number in range(count)]
    filler = b"".join(place.ljust(distance, b"\0") for place in places)
    built = Elf(needs={"libc.so.6": ("V1",)}, contents={"filler": filler}).build()
    data = built.with_fields({"DT_VERNEED": built.regions["filler"][0], "DT_VERNEEDNUM": count})
    source = Ranges(data)
    with pytest.raises(FormatError, match=f"scattered over more than {MAX_ROUNDS} places"):
        read_elf_by_ranges(len(data), source.read_many)
    assert source.rounds == MAX_ROUNDS
    assert source.bytes < 100_000


def test_nothing_tells_the_number_of_symbols() -> None:
    built = Elf(symbols=(Symbol("f"),), hash="none", section_table=False).build()
    assert refusal(built.with_fields({"DT_SYMTAB": built.value("DT_STRTAB")})) == (
        "nothing says the number of dynamic symbols; "
        "expected DT_HASH, DT_GNU_HASH, a section table, or DT_STRTAB after DT_SYMTAB"
    )
