"""The ELF header (System V gABI, chapter 4): file type, machine, and offsets of its tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

from wheel_checks.errors import FormatError
from wheel_checks.formats.elf.bytes import ElfBytes
from wheel_checks.formats.elf.reader import Bits, ByteOrder, Reader, check_entry_size

MAGIC = b"\x7fELF"
HEAD = 4096  # bytes requested when even the header is unknown; includes the program headers, wherever linkers put them

_IDENT_SIZE = 16
_EXTENDED = 0xFFFF  # PN_XNUM, SHN_XINDEX: the true number is in section header 0
_BITS: Mapping[int, Bits] = {1: 32, 2: 64}
_ORDERS: Mapping[int, ByteOrder] = {1: "little", 2: "big"}
_CURRENT = {1: 1}  # the only version of ELF
SECTION_LAYOUT = "IIAAAAIIAA"
"""A section header: name, type, flags, address, offset, size, link, info, alignment, entry size (gABI figure 4-8)."""
_MACHINES = {  # e_machine, bits, byte order -> the machine as wheel platform tags (PEP 600) and uname name it
    (3, 32, "little"): "i686",
    (8, 32, "big"): "mips",
    (8, 32, "little"): "mipsel",
    (8, 64, "big"): "mips64",
    (8, 64, "little"): "mips64el",
    (20, 32, "big"): "ppc",
    (21, 64, "big"): "ppc64",
    (21, 64, "little"): "ppc64le",
    (22, 32, "big"): "s390",
    (22, 64, "big"): "s390x",
    (40, 32, "little"): "armv7l",
    (62, 32, "little"): "x32",
    (62, 64, "little"): "x86_64",
    (183, 64, "big"): "aarch64_be",
    (183, 64, "little"): "aarch64",
    (190, 32, "little"): "cuda",
    (190, 64, "little"): "cuda",
    (224, 64, "little"): "amdgpu",
    (243, 32, "little"): "riscv32",
    (243, 64, "little"): "riscv64",
    (258, 64, "little"): "loongarch64",
}

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ElfHeader:
    """The header. Offsets and sizes in bytes; ``bits`` (the class) is 32 or 64.

    ``segment_count``, ``section_count`` and ``section_names_index`` are as in the header, where 0xFFFF and 0 may mean
    larger numbers; the readers of the tables resolve them.
    """

    bits: Bits
    byte_order: ByteOrder
    os_abi: int
    type_number: int
    machine_number: int
    entry: int
    flags: int
    segments_offset: int
    segment_size: int
    segment_count: int
    sections_offset: int
    section_size: int
    section_count: int
    section_names_index: int

    @classmethod
    def of_machine(cls, machine: str) -> ElfHeader:
        """The header of a shared library for ``machine``, otherwise empty. Raises KeyError."""
        numbers = {name: numbers for numbers, name in _MACHINES.items()}
        number, bits, order = numbers[machine]
        return cls(_BITS[bits // 32], _ORDERS[1 if order == "little" else 2], 0, 3, number, 0, 0, 0, 0, 0, 0, 0, 0, 0)

    @property
    def machine(self) -> str:
        """The machine as wheel platform tags name it ("x86_64", "aarch64", "armv7l" for any Arm), or its number."""
        return _MACHINES.get((self.machine_number, self.bits, self.byte_order), f"machine {self.machine_number}")


def read_header(view: ElfBytes) -> tuple[ElfHeader, Reader]:
    """The header, and a reader for the rest of the file.

    Raises FormatError if it is not an ELF file of version 1, and BytesNeeded when its first bytes are unknown.
    """
    bare = Reader(view)
    if view.size < _IDENT_SIZE:
        raise FormatError(f"the file has {view.size} bytes", expected="an ELF header", hint="it is empty or cut off")
    ident = bare.read(0, _IDENT_SIZE, "e_ident", ahead=HEAD)
    if not ident.startswith(MAGIC):
        raise FormatError(
            f"e_ident starts with {ident[:4].hex(' ')}", expected=f"{MAGIC.hex(' ')} as in every ELF file"
        )
    elf_class, data, version, os_abi = ident[4:8]
    bits = _choice("EI_CLASS", elf_class, _BITS)
    byte_order = _choice("EI_DATA", data, _ORDERS)
    _choice("EI_VERSION", version, _CURRENT)
    reader = Reader(view, bits, byte_order)
    fields = reader.unpack("HHIAAAI6H", _IDENT_SIZE, "the ELF header", ahead=HEAD - _IDENT_SIZE)
    kind, machine, version, entry, segments, sections, flags = fields[:7]
    _, segment_size, segment_count, section_size, section_count, names_index = fields[7:]
    _choice("e_version", version, _CURRENT)
    header = ElfHeader(
        bits=bits,
        byte_order=byte_order,
        os_abi=os_abi,
        type_number=kind,
        machine_number=machine,
        entry=entry,
        flags=flags,
        segments_offset=segments,
        segment_size=segment_size,
        segment_count=segment_count,
        sections_offset=sections,
        section_size=section_size,
        section_count=section_count,
        section_names_index=names_index,
    )
    return header, reader


@dataclass(frozen=True, slots=True)
class TableSizes:
    """The true numbers of program and section headers, and the index of the section that names the sections."""

    segments: int
    sections: int
    section_names: int


def table_sizes(reader: Reader, header: ElfHeader) -> TableSizes:
    """The sizes of both tables, extended ones from section header 0 (gABI). Raises FormatError and BytesNeeded."""
    segments, sections, names = header.segment_count, header.section_count, header.section_names_index
    if not header.sections_offset:
        if sections or segments == _EXTENDED:
            raise FormatError("e_shoff is 0", expected="the offset of the section headers that the ELF header counts")
        return TableSizes(segments, 0, 0)
    check_entry_size("e_shentsize", header.section_size, reader.struct(SECTION_LAYOUT).size)
    if segments == _EXTENDED or sections == 0 or names == _EXTENDED:
        first = reader.unpack(SECTION_LAYOUT, header.sections_offset, "section header 0")
        _, _, _, _, _, size, link, info, _, _ = first
        segments = info if segments == _EXTENDED else segments
        sections = sections or size
        names = link if names == _EXTENDED else names
    return TableSizes(segments, sections, names)


def _choice(field: str, value: int, known: Mapping[int, T]) -> T:
    if value not in known:
        raise FormatError(f"{field} is {value}", expected=" or ".join(map(str, known)))
    return known[value]
