"""Our facts against those of pyelftools, on real files of this host and on built ones of other machines."""

from __future__ import annotations

import io
import re
from pathlib import Path
from typing import Any

import pytest
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.enums import ENUM_E_TYPE, ENUM_SH_TYPE_BASE
from elftools.elf.gnuversions import GNUVerDefSection, GNUVerNeedSection, GNUVerSymSection
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import InterpSegment

from tests.support.elf_samples import BUILT, real_files
from wheel_checks.formats.elf.bytes import WholeFile
from wheel_checks.formats.elf.file import ElfFacts, Missing, Part, read_elf
from wheel_checks.formats.elf.sections import SHT_SYMTAB

Facts = dict[str, Any]


def told_by_pyelftools(data: bytes) -> Facts:
    elf = ELFFile(io.BytesIO(data))
    segments = list(elf.iter_segments())
    dynamic = next((segment for segment in segments if isinstance(segment, DynamicSegment)), None)
    tags = list(dynamic.iter_tags()) if dynamic else []

    def texts(tag: str, attribute: str) -> list[str]:
        return [getattr(entry, attribute) for entry in tags if entry.entry.d_tag == tag]

    numbers = {entry.entry.d_tag: entry.entry.d_val for entry in tags}
    stack = [segment["p_flags"] for segment in segments if segment["p_type"] == "PT_GNU_STACK"]
    return {
        "header": (
            elf.elfclass,
            elf.little_endian,
            ENUM_E_TYPE[elf.header.e_type],
            elf["e_entry"],
            elf["e_flags"],
            elf.num_segments(),
        ),
        "segments": [
            tuple(segment[f"p_{name}"] for name in ("offset", "vaddr", "filesz", "memsz", "flags", "align"))
            for segment in segments
        ],
        "interpreter": next((each.get_interp_name() for each in segments if isinstance(each, InterpSegment)), None),
        "stack": bool(stack[0] & 1) if stack else None,
        "needed": texts("DT_NEEDED", "needed"),
        "soname": next(iter(texts("DT_SONAME", "soname")), None),
        "rpath": ":".join(texts("DT_RPATH", "rpath")),
        "runpath": ":".join(texts("DT_RUNPATH", "runpath")),
        "text_relocations": "DT_TEXTREL" in numbers or bool(numbers.get("DT_FLAGS", 0) & 4),
        **versions_of(elf),
        "sections": [
            (
                section.name,
                *(section[f"sh_{name}"] for name in ("flags", "addr", "offset", "size", "link", "info", "entsize")),
            )
            for section in elf.iter_sections()
        ],
        "section_types": [ENUM_SH_TYPE_BASE[section["sh_type"]] for section in elf.iter_sections()],
        "stripped": elf.get_section_by_name(".symtab") is None,
    }


def versions_of(elf: ELFFile) -> Facts:
    needs, definitions = [], []
    names: dict[int, Any] = {}
    for section in elf.iter_sections():
        if isinstance(section, GNUVerNeedSection):
            for need, versions in section.iter_versions():
                rows = [(each.name, bool(each["vna_flags"] & 2), each["vna_other"]) for each in versions]
                needs.append((need.name, rows))
                names.update({index: (name, need.name) for name, _, index in rows})
        if isinstance(section, GNUVerDefSection):
            for definition, parts in section.iter_versions():
                first, *parents = [part.name for part in parts]
                definitions.append((first, parents, bool(definition["vd_flags"] & 1), definition["vd_ndx"]))
                if not definition["vd_flags"] & 1:
                    names[definition["vd_ndx"]] = (first, "")
    return {"needs": needs, "definitions": definitions, "symbols": symbols_of(elf, names)}


def symbols_of(elf: ELFFile, names: dict[int, Any]) -> list[Any]:
    table = elf.get_section_by_name(".dynsym")
    if not isinstance(table, SymbolTableSection):
        return []
    versions = next((section for section in elf.iter_sections() if isinstance(section, GNUVerSymSection)), None)
    rows: list[Any] = []
    for number, symbol in enumerate(table.iter_symbols()):
        index = versions.get_symbol(number)["ndx"] if versions else "VER_NDX_GLOBAL"
        version, library = names[index & 0x7FFF] if isinstance(index, int) else ("", "")
        defined = symbol["st_shndx"] != "SHN_UNDEF"
        # pyelftools knows 10 by the name that it has on another system
        binding, kind = (re.sub("^ST[BT]_", "", symbol["st_info"][key]) for key in ("bind", "type"))
        rows.append(
            (
                symbol.name,
                version,
                "" if defined else library,
                {"LOOS": "GNU_UNIQUE"}.get(binding, binding),
                {"LOOS": "GNU_IFUNC"}.get(kind, kind),
                defined,
            )
        )
    return rows[1:]


def told_by_us(facts: ElfFacts) -> Facts:
    assert not any(isinstance(getattr(facts, part), Missing) for part in Part)
    header, segments, dynamic, symbols = facts.header, facts.segments, facts.dynamic, facts.symbols
    assert not isinstance(segments, Missing)
    assert not isinstance(facts.versions, Missing)
    assert not isinstance(facts.sections, Missing)
    assert not isinstance(dynamic, Missing)
    assert not isinstance(symbols, Missing)
    return {
        "header": (
            header.bits,
            header.byte_order == "little",
            header.type_number,
            header.entry,
            header.flags,
            header.segment_count,
        ),
        "segments": [
            (each.offset, each.address, each.file_size, each.memory_size, each.flags, each.alignment)
            for each in segments.headers
        ],
        "interpreter": facts.interpreter,
        "stack": segments.executable_stack,
        "needed": list(dynamic.needed) if dynamic else [],
        "soname": dynamic.soname if dynamic else None,
        "rpath": ":".join(dynamic.rpath) if dynamic else "",
        "runpath": ":".join(dynamic.runpath) if dynamic else "",
        "text_relocations": dynamic is not None and dynamic.text_relocations,
        "needs": [
            (need.library, [(version.name, version.weak, version.index) for version in need.versions])
            for need in facts.versions.needs
        ],
        "definitions": [(each.name, list(each.parents), each.base, each.index) for each in facts.versions.definitions],
        "symbols": [tuple(symbol[:6]) for symbol in symbols.symbols] if symbols else [],
        "sections": [
            (each.name, each.flags, each.address, each.offset, each.size, each.link, each.info, each.entry_size)
            for each in facts.sections.headers
        ],
        "section_types": [each.type_number for each in facts.sections.headers],
        "stripped": not facts.sections.of_type(SHT_SYMTAB),
    }


@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_a_real_file_is_read_as_pyelftools_reads_it(path: Path) -> None:
    data = path.read_bytes()
    assert told_by_us(read_elf(WholeFile(data), list(Part))) == told_by_pyelftools(data)


@pytest.mark.parametrize("name", BUILT)
def test_a_built_file_is_read_as_pyelftools_reads_it(name: str) -> None:
    data = BUILT[name].build().data
    facts = read_elf(WholeFile(data), list(Part))
    assert facts.header.machine == name.partition(" ")[0]
    assert told_by_us(facts) == told_by_pyelftools(data)
