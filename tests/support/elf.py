"""A writer of small ELF files, of both classes and byte orders, that remembers where each field is so as to break it.

``Elf(needed=("libc.so.6",)).build()`` is a shared library that readers and loaders accept;
``.with_fields({"DT_STRSZ": 2**60})`` of the result is the same file with that field overwritten.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from wheel_checks.formats.elf.gnu_hash import gnu_hash
from wheel_checks.formats.elf.versions import elf_hash

X86_64, AARCH64, I386, S390, PPC = 62, 183, 3, 22, 20
LOCAL, GLOBAL, WEAK = 0, 1, 2
OBJECT, FUNC = 1, 2

_LOAD, _DYNAMIC, _INTERP, _NOTE, _STACK = 1, 2, 3, 4, 0x6474E551
_TAGS = {
    "NULL": 0, "NEEDED": 1, "HASH": 4, "STRTAB": 5, "SYMTAB": 6, "STRSZ": 10, "SYMENT": 11, "SONAME": 14, "RPATH": 15,
    "TEXTREL": 22, "RUNPATH": 29, "FLAGS": 30, "GNU_HASH": 0x6FFFFEF5, "VERSYM": 0x6FFFFFF0, "FLAGS_1": 0x6FFFFFFB,
    "VERDEF": 0x6FFFFFFC, "VERDEFNUM": 0x6FFFFFFD, "VERNEED": 0x6FFFFFFE, "VERNEEDNUM": 0x6FFFFFFF,
}  # fmt: skip
_SECTION_TYPES = {
    ".interp": 1, ".note.gnu.build-id": 7, ".dynsym": 11, ".hash": 5, ".gnu.hash": 0x6FFFFFF6,
    ".gnu.version": 0x6FFFFFFF, ".gnu.version_r": 0x6FFFFFFE, ".gnu.version_d": 0x6FFFFFFD, ".dynstr": 3, ".dynamic": 6,
    ".symtab": 2, ".shstrtab": 3,
}  # fmt: skip
_SYMBOL_SIZE = {32: 16, 64: 24}
_LINKS = {".dynsym": ".dynstr", ".gnu.version_r": ".dynstr", ".gnu.version_d": ".dynstr", ".dynamic": ".dynstr",
          ".gnu.version": ".dynsym", ".hash": ".dynsym", ".gnu.hash": ".dynsym", ".symtab": ".dynstr"}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Symbol:
    """One dynamic symbol. ``library`` and ``version`` are one of the needs; a ``version`` alone is a definition."""

    name: str
    defined: bool = True
    version: str = ""
    library: str = ""
    binding: int = GLOBAL
    kind: int = FUNC


@dataclass(frozen=True, slots=True)
class BuiltElf:
    """The bytes, and offset and :mod:`struct` layout of each field that was written."""

    data: bytes
    fields: Mapping[str, tuple[int, str]]
    regions: Mapping[str, tuple[int, int]]

    def with_fields(self, values: Mapping[str, int]) -> bytes:
        """The file with these fields overwritten; values are cut to the width of the field."""
        data = bytearray(self.data)
        for name, value in values.items():
            offset, layout = self.fields[name]
            struct.pack_into(layout, data, offset, value % (1 << 8 * struct.calcsize(layout)))
        return bytes(data)

    def value(self, name: str) -> int:
        """What the field holds."""
        offset, layout = self.fields[name]
        return int(struct.unpack_from(layout, self.data, offset)[0])


@dataclass(frozen=True, slots=True)
class Elf:
    """What to write. Two loadable segments; the second, with .dynamic, has other addresses than offsets.

    ``moved`` puts .dynstr after ``gap`` bytes too, as patchelf does. ``needs`` gives the versions by library, a weak
    one with "?" in front; of ``definitions`` the first is the base, and "B<A" is B that inherits from A. ``isa_needed``
    has a bit for each level of x86-64, v1 to v4, that the file is marked to need.
    """

    bits: Literal[32, 64] = 64
    order: Literal["little", "big"] = "little"
    machine: int = X86_64
    kind: int = 3
    interpreter: str = ""
    soname: str = ""
    needed: Sequence[str] = ()
    rpath: str = ""
    runpath: str = ""
    flags: int = 0
    flags_1: int = 0
    text_relocations: bool = False
    needs: Mapping[str, Sequence[str]] = field(default_factory=dict)
    definitions: Sequence[str] = ()
    symbols: Sequence[Symbol] = ()
    hash: Literal["gnu", "sysv", "none"] = "gnu"
    build_id: bytes = b""
    isa_needed: int = 0
    alignment: int = 0x1000
    stack_flags: int | None = 6
    contents: Mapping[str, bytes] = field(default_factory=dict)
    moved: bool = False
    gap: int = 0
    segment_table: bool = True
    section_table: bool = True
    symbol_table: bool = False

    def build(self) -> BuiltElf:
        """The file."""
        return _Writer(self).write()


class _Strings:
    def __init__(self) -> None:
        self.data = bytearray(1)
        self._known = {"": 0}

    def add(self, string: str) -> int:
        if string not in self._known:
            self._known[string] = len(self.data)
            self.data += string.encode() + b"\0"
        return self._known[string]


class _Writer:
    def __init__(self, elf: Elf) -> None:
        self.elf = elf
        self.data = bytearray()
        self.fields: dict[str, tuple[int, str]] = {}
        self.regions: dict[str, tuple[int, int]] = {}
        self.strings = _Strings()
        self.order = "<" if elf.order == "little" else ">"
        self.wide = "Q" if elf.bits == 64 else "I"
        self.second_start = 0
        self.indices = self._version_indices()
        undefined = [symbol for symbol in elf.symbols if not symbol.defined]
        self.symbols = [*undefined, *(symbol for symbol in elf.symbols if symbol.defined)]
        self.first_defined = 1 + len(undefined)

    def put(self, layout: str, **values: int) -> None:
        """Write fields one after another; "A" is a number as wide as the class."""
        self.put_named(layout, values)

    def put_named(self, layout: str, values: Mapping[str, int]) -> None:
        for code, (name, value) in zip(layout, values.items(), strict=True):
            one = self.order + (self.wide if code == "A" else code)
            self.fields[name] = (len(self.data), one)
            self.data += struct.pack(one, value)

    def set(self, **values: int) -> None:
        self.set_named(values)

    def set_named(self, values: Mapping[str, int]) -> None:
        for name, value in values.items():
            offset, layout = self.fields[name]
            struct.pack_into(layout, self.data, offset, value)

    def address(self, offset: int) -> int:
        """Addresses of the second segment are one alignment, at least 64 KiB, after the offsets."""
        return offset + (max(self.elf.alignment, 0x10000) if self.second_start and offset >= self.second_start else 0)

    def pad(self, alignment: int = 8) -> None:
        self.data += bytes(-len(self.data) % alignment)

    def region(self, name: str, content: bytes = b"") -> _Region:
        return _Region(self, name, content)

    def write(self) -> BuiltElf:
        elf = self.elf
        self._header()
        names = self._segment_headers()
        self._collect_strings()
        if elf.interpreter:
            self.region(".interp", elf.interpreter.encode() + b"\0").close()
        if elf.build_id:
            note = struct.pack(self.order + "3I", 4, len(elf.build_id), 3) + b"GNU\0" + elf.build_id
            self.region(".note.gnu.build-id", note).close()
        if elf.isa_needed:
            note = struct.pack(self.order + "3I", 4, 16, 5) + b"GNU\0"
            note += struct.pack(self.order + "4I", 0xC0008002, 4, elf.isa_needed, 0)
            self.region(".note.gnu.property", note).close()
        self._symbols()
        self._versions()
        for name, content in elf.contents.items():
            self.region(name, content).close()
        if not elf.moved:
            self.region(".dynstr", bytes(self.strings.data)).close()
        self.data += bytes(elf.gap)
        self.pad(64)
        self.second_start = len(self.data)
        if elf.moved:
            self.region(".dynstr", bytes(self.strings.data)).close()
        self._dynamic()
        self._set_segments(names, len(self.data))
        if elf.section_table:
            self._sections()
        return BuiltElf(bytes(self.data), self.fields, self.regions)

    def _header(self) -> None:
        ident = bytes([1 if self.elf.bits == 32 else 2, 1 if self.elf.order == "little" else 2, 1])
        self.data += b"\x7fELF"
        self.put("BBB", EI_CLASS=ident[0], EI_DATA=ident[1], EI_VERSION=1)
        self.data += bytes(9)
        self.put("HHI", e_type=self.elf.kind, e_machine=self.elf.machine, e_version=1)
        self.put("AAAI", e_entry=0, e_phoff=0, e_shoff=0, e_flags=0)
        header, segment, section = (52, 32, 40) if self.elf.bits == 32 else (64, 56, 64)
        self.put("HHH", e_ehsize=header, e_phentsize=segment, e_phnum=0)
        self.put("HHH", e_shentsize=section, e_shnum=0, e_shstrndx=0)

    def _segment_headers(self) -> list[str]:
        if not self.elf.segment_table:
            return []
        names = ["LOAD0", "LOAD1", "DYNAMIC"]
        names += ["INTERP"] * bool(self.elf.interpreter) + ["NOTE"] * bool(self.elf.build_id)
        names += ["PROPERTY"] * bool(self.elf.isa_needed)
        names += ["GNU_STACK"] * (self.elf.stack_flags is not None)
        self.set(e_phoff=len(self.data), e_phnum=len(names))
        order = "type flags offset vaddr paddr filesz memsz align" if self.elf.bits == 64 else (
            "type offset vaddr paddr filesz memsz flags align")  # fmt: skip
        for name in names:
            layout = "IIAAAAAA" if self.elf.bits == 64 else "AAAAAAIA"
            self.put_named(layout, {f"p_{key}[{name}]": 0 for key in order.split()})
        return names

    def _set_segments(self, names: Sequence[str], end: int) -> None:
        types = {
            "LOAD0": _LOAD,
            "LOAD1": _LOAD,
            "DYNAMIC": _DYNAMIC,
            "INTERP": _INTERP,
            "NOTE": _NOTE,
            "PROPERTY": _NOTE,
            "GNU_STACK": _STACK,
        }
        places = {
            "LOAD0": (0, self.second_start),
            "LOAD1": (self.second_start, end - self.second_start),
            "DYNAMIC": self.regions.get(".dynamic", (0, 0)),
            "INTERP": self.regions.get(".interp", (0, 0)),
            "NOTE": self.regions.get(".note.gnu.build-id", (0, 0)),
            "PROPERTY": self.regions.get(".note.gnu.property", (0, 0)),
            "GNU_STACK": (0, 0),
        }
        for name in names:
            offset, size = places[name]
            address = self.address(offset) if size else 0
            flags = self.elf.stack_flags if name == "GNU_STACK" and self.elf.stack_flags is not None else 4
            align = self.elf.alignment if name.startswith("LOAD") else 4
            values = {"type": types[name], "flags": flags, "offset": offset, "vaddr": address, "paddr": address,
                      "filesz": size, "memsz": size, "align": align}  # fmt: skip
            self.set_named({f"p_{key}[{name}]": value for key, value in values.items()})

    def _collect_strings(self) -> None:
        elf = self.elf
        versions = [*elf.needs, *(name.lstrip("?") for names in elf.needs.values() for name in names)]
        versions += [part for name in elf.definitions for part in name.split("<")]
        for string in [
            *(symbol.name for symbol in self.symbols),
            *elf.needed,
            elf.soname,
            elf.rpath,
            elf.runpath,
            *versions,
        ]:
            self.strings.add(string)

    def _version_indices(self) -> dict[tuple[str, str], int]:
        """The index of each (library, version); definitions have no library and start with the base at 1."""
        indices = {("", name.partition("<")[0]): number for number, name in enumerate(self.elf.definitions, start=1)}
        next_index = max(2, len(indices) + 1)
        for library, names in self.elf.needs.items():
            for name in names:
                indices[library, name.lstrip("?")] = next_index
                next_index += 1
        return indices

    def _symbols(self) -> None:
        if not self.symbols:
            return
        with self.region(".dynsym"):
            for number, symbol in enumerate([Symbol("", defined=False, binding=0, kind=0), *self.symbols]):
                info, section = symbol.binding << 4 | symbol.kind, 1 if symbol.defined else 0
                values = {"name": self.strings.add(symbol.name), "value": 0, "size": 0, "info": info, "other": 0,
                          "shndx": section}  # fmt: skip
                keys, layout = ("name info other shndx value size", "IBBHAA") if self.elf.bits == 64 else (
                    "name value size info other shndx", "IAABBH")  # fmt: skip
                self.put_named(layout, {f"st_{key}[{number}]": values[key] for key in keys.split()})
        if self.elf.hash == "sysv":
            with self.region(".hash"):
                self.put("II", nbucket=1, nchain=len(self.symbols) + 1)
                self.data += bytes(4 * (len(self.symbols) + 2))
        elif self.elf.hash == "gnu":
            with self.region(".gnu.hash"):
                hashed = len(self.symbols) + 1 - self.first_defined
                self.put("IIII", nbuckets=1, symoffset=self.first_defined if hashed else 1, bloom_size=1, bloom_shift=0)
                self.put("A", bloom=(1 << self.elf.bits) - 1)
                self.put("I", **{"bucket[0]": self.first_defined if hashed else 0})
                for number, symbol in enumerate(self.symbols[self.first_defined - 1 :] if hashed else ()):
                    value = gnu_hash(symbol.name) & ~1 | int(number == hashed - 1)
                    self.put("I", **{f"chain[{number}]": value})
        if self.indices:
            with self.region(".gnu.version"):
                self.put_named("H", {"versym[0]": 0})
                for number, symbol in enumerate(self.symbols, start=1):
                    self.put_named("H", {f"versym[{number}]": self.indices.get((symbol.library, symbol.version), 1)})

    def _versions(self) -> None:
        if self.elf.needs:
            with self.region(".gnu.version_r"):
                self._needs()
        if self.elf.definitions:
            with self.region(".gnu.version_d"):
                self._definitions()

    def _needs(self) -> None:
        number = 0
        for which, (library, names) in enumerate(self.elf.needs.items()):
            following = 0 if which == len(self.elf.needs) - 1 else 16 + 16 * len(names)
            self.put_named("HHIII", {f"vn_version[{which}]": 1, f"vn_cnt[{which}]": len(names),
                           f"vn_file[{which}]": self.strings.add(library), f"vn_aux[{which}]": 16,
                           f"vn_next[{which}]": following})  # fmt: skip
            for rest, marked in zip(range(len(names) - 1, -1, -1), names, strict=True):
                name = marked.lstrip("?")
                self.put_named("IHHII", {f"vna_hash[{number}]": elf_hash(name),
                               f"vna_flags[{number}]": 2 * (marked != name),
                               f"vna_other[{number}]": self.indices[library, name],
                               f"vna_name[{number}]": self.strings.add(name),
                               f"vna_next[{number}]": 16 if rest else 0})  # fmt: skip
                number += 1

    def _definitions(self) -> None:
        number = 0
        for which, names in enumerate(definition.split("<") for definition in self.elf.definitions):
            following = 0 if which == len(self.elf.definitions) - 1 else 20 + 8 * len(names)
            self.put_named("HHHHIII", {f"vd_version[{which}]": 1, f"vd_flags[{which}]": int(which == 0),
                           f"vd_ndx[{which}]": which + 1, f"vd_cnt[{which}]": len(names),
                           f"vd_hash[{which}]": elf_hash(names[0]), f"vd_aux[{which}]": 20,
                           f"vd_next[{which}]": following})  # fmt: skip
            for rest, name in zip(range(len(names) - 1, -1, -1), names, strict=True):
                self.put_named(
                    "II", {f"vda_name[{number}]": self.strings.add(name), f"vda_next[{number}]": 8 if rest else 0}
                )
                number += 1

    def _dynamic(self) -> None:
        with self.region(".dynamic"):
            for name, tag, value in self._entries():
                self.put_named("AA", {f"d_tag[{name}]": _TAGS[tag], f"DT_{name}": value})

    def _entries(self) -> Iterator[tuple[str, str, int]]:
        """(name of the field, tag, value); several DT_NEEDED are numbered."""
        elf = self.elf
        for number, name in enumerate(elf.needed):
            yield f"NEEDED[{number}]", "NEEDED", self.strings.add(name)
        names = {tag: self.strings.add(text) for tag, text in self._texts().items() if text}
        flags = {"FLAGS": elf.flags, "FLAGS_1": elf.flags_1, "TEXTREL": elf.text_relocations}
        for tag, value in {**names, **{tag: int(value) for tag, value in flags.items() if value}}.items():
            yield tag, tag, value
        regions = {"STRTAB": ".dynstr", "SYMTAB": ".dynsym", "HASH": ".hash", "GNU_HASH": ".gnu.hash",
                   "VERSYM": ".gnu.version", "VERNEED": ".gnu.version_r", "VERDEF": ".gnu.version_d"}  # fmt: skip
        for tag, region in regions.items():
            if region in self.regions:
                yield tag, tag, self.address(self.regions[region][0])
        sizes = {"STRSZ": len(self.strings.data), "SYMENT": _SYMBOL_SIZE[elf.bits] if self.symbols else 0,
                 "VERNEEDNUM": len(elf.needs), "VERDEFNUM": len(elf.definitions)}  # fmt: skip
        for tag, value in sizes.items():
            if value:
                yield tag, tag, value
        yield "NULL", "NULL", 0

    def _texts(self) -> dict[str, str]:
        return {"SONAME": self.elf.soname, "RPATH": self.elf.rpath, "RUNPATH": self.elf.runpath}

    def _sections(self) -> None:
        if self.elf.symbol_table:
            self.region(".symtab", bytes(_SYMBOL_SIZE[self.elf.bits])).close()
        image = set(self.regions) - {".symtab"}
        names = _Strings()
        rows = ["", *self.regions, ".shstrtab"]
        indices = [names.add(name) for name in rows]
        self.region(".shstrtab", bytes(names.data)).close()
        self.pad()
        self.set(e_shoff=len(self.data), e_shnum=len(rows), e_shstrndx=len(rows) - 1)
        sizes = {".dynsym": _SYMBOL_SIZE[self.elf.bits], ".symtab": _SYMBOL_SIZE[self.elf.bits],
                 ".dynamic": self.elf.bits // 4,
                 ".gnu.version": 2}  # fmt: skip
        links = {name: rows.index(target) for name, target in _LINKS.items() if target in rows}
        infos = {
            ".dynsym": 1,
            ".gnu.version_r": len(self.elf.needs),
            ".gnu.version_d": len(self.elf.definitions),
            ".symtab": 1,
        }
        for name, index in zip(rows, indices, strict=True):
            offset, size = self.regions.get(name, (0, 0))
            kind = _SECTION_TYPES.get(name, 1) if name else 0
            values = {"name": index, "type": kind, "flags": 2 * (name in image),
                      "addr": self.address(offset) if name in image else 0, "offset": offset, "size": size,
                      "link": links.get(name, 0), "info": infos.get(name, 0), "addralign": 1,
                      "entsize": sizes.get(name, 0)}  # fmt: skip
            self.put_named("IIAAAAIIAA", {f"sh_{key}[{name}]": value for key, value in values.items()})


class _Region:
    """A named place in the file, written between ``with`` and its end, or at once and closed."""

    def __init__(self, writer: _Writer, name: str, content: bytes) -> None:
        writer.pad()
        self._writer, self._name, self._start = writer, name, len(writer.data)
        writer.data += content

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Note where the region is."""
        self._writer.regions[self._name] = (self._start, len(self._writer.data) - self._start)
