"""Facts of ELF files: whole, by their head and tail, and by ranges."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from tests.support.elf import AARCH64, I386, PPC, Elf
from tests.support.elf_samples import TORCH_LIKE, Ranges
from wheel_checks.formats.elf.bytes import ByteRange, BytesNeeded, KnownRegions, WholeFile
from wheel_checks.formats.elf.dynamic import DynamicFacts
from wheel_checks.formats.elf.file import LOADER_PARTS, ElfFacts, Missing, Part, read_elf, read_elf_by_ranges
from wheel_checks.formats.elf.symbols import DynamicSymbol, DynamicSymbols
from wheel_checks.formats.elf.versions import NeededVersion, SymbolVersions, VersionDefinition, VersionNeed


def facts_of(elf: Elf, parts: frozenset[Part] = frozenset(Part)) -> ElfFacts:
    return read_elf(WholeFile(elf.build().data), parts)


def dynamic_of(elf: Elf) -> DynamicFacts:
    dynamic = facts_of(elf).dynamic
    assert isinstance(dynamic, DynamicFacts)
    return dynamic


def symbols_of(elf: Elf) -> DynamicSymbols:
    symbols = facts_of(elf).symbols
    assert isinstance(symbols, DynamicSymbols)
    return symbols


def test_a_library_as_torch_ships_it() -> None:
    facts = facts_of(TORCH_LIKE)
    assert (facts.header.type_number, facts.header.machine, facts.header.bits, facts.header.byte_order) == (
        (3, "aarch64", 64, "little")
    )
    assert facts.interpreter is None
    assert facts.dynamic == DynamicFacts(
        found_by="segment",
        needed=("libc10.so", "libcudart.so.13", "libc.so.6"),
        soname="libtorch_cuda.so",
        rpath=("$ORIGIN", "$ORIGIN/../../nvidia/cu13/lib"),
        runpath=(),
        text_relocations=False,
    )
    assert not facts.missing


def test_symbol_versions() -> None:
    versions = facts_of(TORCH_LIKE).versions
    assert not isinstance(versions, Missing)
    assert versions.needs == (
        VersionNeed("libc.so.6", (NeededVersion("GLIBC_2.17", False, 4), NeededVersion("GLIBC_2.34", True, 5))),
        VersionNeed("libcudart.so.13", (NeededVersion("libcudart.so.13", False, 6),)),
    )
    assert versions.definitions == (
        VersionDefinition("libtorch_cuda.so", (), True, False, 1),
        VersionDefinition("TORCH_1", (), False, False, 2),
        VersionDefinition("TORCH_2", ("TORCH_1",), False, False, 3),
    )


def test_a_version_that_a_linker_would_not_choose_keeps_its_index() -> None:
    built = TORCH_LIKE.build()
    data = built.with_fields({"vna_other[0]": 0x8000 | built.value("vna_other[0]")})
    assert read_elf(WholeFile(data)).versions == facts_of(TORCH_LIKE).versions


@pytest.mark.parametrize("hash_table", ["gnu", "sysv"])
def test_dynamic_symbols(hash_table: Literal["gnu", "sysv"]) -> None:
    symbols = symbols_of(replace(TORCH_LIKE, hash=hash_table))
    assert symbols.counted_by == {"gnu": "gnu-hash", "sysv": "hash"}[hash_table]
    assert symbols.undefined == (
        DynamicSymbol("memcpy", "GLIBC_2.17", "libc.so.6", "GLOBAL", "FUNC", False, True),
        DynamicSymbol("_ITM_registerTMCloneTable", "", "", "WEAK", "NOTYPE", False, True),
    )
    assert symbols.defined == (
        DynamicSymbol("at_add", "TORCH_2", "", "GLOBAL", "FUNC", True, True),
        DynamicSymbol("plain", "", "", "GLOBAL", "OBJECT", True, True),
    )


def test_an_older_version_of_a_symbol_is_not_the_default() -> None:
    built = TORCH_LIKE.build()
    data = built.with_fields({"versym[3]": 0x8000 | built.value("versym[3]")})
    symbols = read_elf(WholeFile(data), {Part.SYMBOLS}).symbols
    assert isinstance(symbols, DynamicSymbols)
    assert [symbol.name for symbol in symbols.defined if not symbol.default] == ["at_add"]


@pytest.mark.parametrize(
    ("options", "counted_by"),
    [
        ({"symbols": TORCH_LIKE.symbols[:2]}, "section"),  # the GNU hash table omits undefined symbols
        ({"hash": "none"}, "section"),
        ({"hash": "none", "section_table": False, "needs": {}, "definitions": ()}, "string-table"),
    ],
)
def test_symbols_that_no_hash_table_counts(options: dict[str, object], counted_by: str) -> None:
    elf = replace(TORCH_LIKE, contents={}, build_id=b"", moved=False, needs={}, definitions=())
    elf = replace(elf, **options)  # type: ignore[arg-type]  # the names are those of the dataclass
    symbols = symbols_of(elf)
    assert symbols.counted_by == counted_by
    assert [symbol.name for symbol in symbols.symbols] == [symbol.name for symbol in elf.symbols]


@pytest.mark.parametrize("machine", [AARCH64, I386, PPC])
@pytest.mark.parametrize("moved", [False, True])
def test_the_same_facts_in_every_class_and_byte_order(machine: int, moved: bool) -> None:
    elf = replace(
        TORCH_LIKE,
        machine=machine,
        bits=64 if machine == AARCH64 else 32,
        order="big" if machine == PPC else "little",
        moved=moved,
    )
    facts, expected = facts_of(elf), facts_of(TORCH_LIKE)
    assert (facts.dynamic, facts.versions, facts.symbols) == (expected.dynamic, expected.versions, expected.symbols)
    assert facts.header.machine == {AARCH64: "aarch64", I386: "i686", PPC: "ppc"}[machine]


def test_an_unknown_machine_keeps_its_number() -> None:
    assert facts_of(Elf(machine=4711)).header.machine == "machine 4711"


@pytest.mark.parametrize("alignment", [0x1000, 0x10000])
def test_the_alignment_of_what_is_loaded(alignment: int) -> None:
    segments = facts_of(Elf(machine=AARCH64, alignment=alignment)).segments
    assert not isinstance(segments, Missing)
    assert segments.load_alignments == (alignment, alignment)
    assert segments.smallest_load_alignment == alignment


@pytest.mark.parametrize(("flags", "executable"), [(6, False), (7, True), (None, None)])
def test_the_stack(flags: int | None, executable: bool | None) -> None:
    segments = facts_of(Elf(stack_flags=flags)).segments
    assert not isinstance(segments, Missing)
    assert segments.executable_stack is executable


@pytest.mark.parametrize(
    ("elf", "expected"),
    [
        (Elf(text_relocations=True), True),
        (Elf(flags=0x4), True),
        (Elf(flags=0x1A, flags_1=0xF), False),
    ],
)
def test_text_relocations_are_a_tag_or_a_flag(elf: Elf, expected: bool) -> None:
    assert dynamic_of(elf).text_relocations is expected


def test_paths_are_kept_as_they_are_written() -> None:
    dynamic = dynamic_of(Elf(rpath="/build//tree/:", runpath="$ORIGIN/../x"))
    assert dynamic.rpath == ("/build//tree/", "")
    assert dynamic.runpath == ("$ORIGIN/../x",)


def test_a_program_and_its_interpreter() -> None:
    facts = facts_of(Elf(kind=2, interpreter="/lib/ld-linux-aarch64.so.1"))
    assert (facts.header.type_number, facts.interpreter) == (2, "/lib/ld-linux-aarch64.so.1")


def test_sections_with_gpu_code() -> None:
    elf = TORCH_LIKE.build()
    sections = read_elf(WholeFile(elf.data)).sections
    assert not isinstance(sections, Missing)
    assert [(each.name, each.type_number, each.offset, each.size) for each in sections.gpu_code] == [
        (name, 1, *elf.regions[name]) for name in (".nv_fatbin", "__nv_relfatbin")
    ]
    assert len(sections.named(".nvFatBinSegment")) == 1


def test_without_a_section_table_the_loader_s_facts_are_the_same() -> None:
    with_table, without = facts_of(TORCH_LIKE), facts_of(replace(TORCH_LIKE, section_table=False))
    for part in Part:
        if part is not Part.SECTIONS:
            assert getattr(with_table, part) == getattr(without, part)


def test_without_program_headers_the_section_table_leads_to_the_facts() -> None:
    facts = facts_of(replace(TORCH_LIKE, segment_table=False))
    expected = facts_of(TORCH_LIKE)
    assert facts.dynamic == replace(dynamic_of(TORCH_LIKE), found_by="section")
    assert (facts.versions, facts.symbols) == (expected.versions, expected.symbols)


@pytest.mark.parametrize("fields", [{"p_type[DYNAMIC]": 0}, {"p_filesz[DYNAMIC]": 0}])
def test_a_file_whose_segments_show_the_loader_no_dynamic_section(fields: dict[str, int]) -> None:
    facts = read_elf(WholeFile(TORCH_LIKE.build().with_fields(fields)), list(Part))
    assert (facts.dynamic, facts.symbols) == (None, None)
    assert facts.versions == SymbolVersions()


def test_sections_without_names() -> None:
    data = Elf().build().with_fields({"e_shstrndx": 0})
    sections = read_elf(WholeFile(data)).sections
    assert not isinstance(sections, Missing)
    assert {section.name for section in sections.headers} == {""}
    assert len(sections.headers) > 1


def test_numbers_too_large_for_the_header_are_in_section_header_0() -> None:
    built = Elf().build()
    fields = {
        "e_shnum": 0,
        "sh_size[]": built.value("e_shnum"),
        "e_shstrndx": 0xFFFF,
        "sh_link[]": built.value("e_shstrndx"),
    }
    fields |= {"e_phnum": 0xFFFF, "sh_info[]": built.value("e_phnum")}
    facts = read_elf(WholeFile(built.with_fields(fields)))
    expected = read_elf(WholeFile(built.data))
    assert facts.segments == expected.segments
    assert not isinstance(facts.sections, Missing)
    assert not isinstance(expected.sections, Missing)
    assert facts.sections.headers[1:] == expected.sections.headers[1:]


# From parts of a file


def known_of(data: bytes, *places: slice) -> KnownRegions:
    known = KnownRegions(len(data))
    for place in places:
        start, stop, _ = place.indices(len(data))
        known.add(start, data[start:stop])
    return known


def test_a_head_and_a_tail_tell_everything_of_a_patched_library() -> None:
    data = TORCH_LIKE.build().data
    known = known_of(data, slice(0, 16384), slice(-16384, None))
    assert read_elf(known, list(Part)) == read_elf(WholeFile(data), list(Part))


def test_a_head_alone_tells_some_parts_and_what_the_others_need() -> None:
    built = TORCH_LIKE.build()
    facts = read_elf(known_of(built.data, slice(0, 1024)))
    assert facts.header.machine == "aarch64"
    assert not isinstance(facts.segments, Missing)
    assert facts.missing == {Part.DYNAMIC, Part.VERSIONS, Part.SECTIONS}
    dynamic = ByteRange(*built.regions[".dynamic"])
    assert facts.dynamic == facts.versions == Missing((dynamic,))
    assert dynamic in facts.needed_ranges
    assert (built.value("e_shoff"), len(built.data) - built.value("e_shoff")) in facts.needed_ranges


def test_parts_that_were_not_asked_for_are_missing_without_needs() -> None:
    facts = read_elf(known_of(TORCH_LIKE.build().data, slice(0, 1024)), {Part.SEGMENTS})
    assert facts.dynamic == Missing()
    assert (facts.missing, facts.needed_ranges) == (frozenset(), ())


def test_without_the_header_nothing_is_told() -> None:
    with pytest.raises(BytesNeeded) as needed:
        read_elf(KnownRegions(100_000))
    assert needed.value.ranges == ((0, 4096),)


@pytest.mark.parametrize("moved", [False, True])
def test_by_ranges_few_bytes_and_rounds_lead_to_the_same_facts(moved: bool) -> None:
    data = replace(TORCH_LIKE, moved=moved).build().data
    source = Ranges(data)
    assert read_elf_by_ranges(len(data), source.read_many) == read_elf(WholeFile(data))
    assert source.rounds <= 5
    assert source.bytes < 16_000


def test_the_loader_s_parts_by_ranges_need_no_section_table() -> None:
    data = replace(TORCH_LIKE, moved=False).build().data + bytes(1_000_000)
    source = Ranges(data)
    facts = read_elf_by_ranges(len(data), source.read_many, LOADER_PARTS)
    assert facts.dynamic == dynamic_of(TORCH_LIKE)
    assert facts.sections == Missing()
    assert source.rounds <= 3
    assert source.bytes < 5000
