"""A writer of small PE files that remembers where each field is so as to break it.

``Pe(imports=("KERNEL32.dll",)).build()`` is a DLL that readers accept, laid out as linkers do: code, .rdata with the
import tables at its end, data, then what ``sections`` hold.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

X86_64, ARM64, I386 = 0x8664, 0xAA64, 0x014C

_UNIT, _PAGE = 0x200, 0x1000
_START = 0x80  # of the signature
_BASE = 0x180000000


@dataclass(frozen=True, slots=True)
class BuiltPe:
    """The bytes, and offset and :mod:`struct` layout of each field that was written."""

    data: bytes
    fields: Mapping[str, tuple[int, str]]

    def with_fields(self, values: Mapping[str, int]) -> bytes:
        """The file with these fields overwritten."""
        data = bytearray(self.data)
        for name, value in values.items():
            offset, layout = self.fields[name]
            struct.pack_into(layout, data, offset, value)
        return bytes(data)


@dataclass(frozen=True, slots=True)
class Pe:
    """What to write. ``code`` and ``behind`` are what is before and after the import tables.

    ``sections`` are further ones, by name; a name of more than eight bytes goes into a string table when ``strings`` is
    set, else it is cut. ``absolute`` writes delay descriptors as old linkers did, with absolute addresses.
    """

    machine: int = X86_64
    bits: int = 64
    imports: Sequence[str] = ()
    delay_imports: Sequence[str] = ()
    sections: Mapping[str, bytes] = field(default_factory=dict)
    code: bytes = b"\x90" * 64
    behind: bytes = bytes(64)
    strings: bool = False
    absolute: bool = False

    def build(self) -> BuiltPe:
        """The file."""
        contents = {".text": self.code, ".rdata": b"", ".data": self.behind, **self.sections}
        optional_size = (112 if self.bits == 64 else 96) + 16 * 8
        table = _START + 24 + optional_size
        headers_size = _up(table + 40 * len(contents), _UNIT)
        rdata = _PAGE + _up(len(self.code), _PAGE)
        contents[".rdata"], imports, delay = self._tables(rdata)
        fields = {
            "e_lfanew": (0x3C, "<I"),
            "NumberOfSections": (_START + 6, "<H"),
            "SizeOfOptionalHeader": (_START + 20, "<H"),
            "magic": (_START + 24, "<H"),
            "NumberOfRvaAndSizes": (_START + 24 + optional_size - 16 * 8 - 4, "<I"),
            "imports": (_START + 24 + optional_size - 16 * 8 + 8, "<I"),
            "delay_imports": (_START + 24 + optional_size - 16 * 8 + 13 * 8, "<I"),
        }
        body, rows, names = b"", b"", b""
        address = _PAGE
        for number, (name, data) in enumerate(contents.items()):
            raw = name.encode()
            if len(raw) > 8 and self.strings:
                raw, names = f"/{4 + len(names)}".encode(), names + raw + b"\0"
            place = headers_size + len(body)
            for key, at, layout in (("VirtualAddress", 12, "<I"), ("SizeOfRawData", 16, "<I"), ("at", 20, "<I")):
                fields[f"{name} {key}"] = (table + 40 * number + at, layout)
            fields[f"{name} name"] = (table + 40 * number, "<Q")
            size = _up(len(data), _UNIT)
            rows += struct.pack("<8sIIIIIIHHI", raw[:8], len(data), address, size, place if size else 0, 0, 0, 0, 0, 0)
            body += data.ljust(size, b"\0")
            address += max(_PAGE, _up(len(data), _PAGE))
        fields["first import name"] = (headers_size + _up(len(self.code), _UNIT) + imports - rdata + 12, "<I")
        symbols = headers_size + len(body) if self.strings else 0
        fields["PointerToSymbolTable"] = (_START + 12, "<I")
        coff = struct.pack("<4sHHIIIHH", b"PE\0\0", self.machine, len(contents), 0, symbols, 0, optional_size, 0x2022)
        data = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", _START) + bytes(_START - 0x40) + coff
        data += self._optional(headers_size, imports if self.imports else 0, delay if self.delay_imports else 0) + rows
        data = data.ljust(headers_size, b"\0") + body
        if self.strings:
            data += struct.pack("<I", 4 + len(names)) + names.ljust(256, b"\0")
        return BuiltPe(data, fields)

    def _tables(self, address: int) -> tuple[bytes, int, int]:
        """.rdata at ``address``, and the addresses of the import and the delay import table in it."""
        imports, delay = address + 16, address + 16 + 20 * (len(self.imports) + 1)
        names = delay + 32 * (len(self.delay_imports) + 1)
        first, second, text = b"", b"", b""
        for name in self.imports:
            first += struct.pack("<5I", names, 0, 0, names + len(text), address)
            text += name.encode("latin-1") + b"\0"
        base = _BASE % (1 << 32) if self.bits == 64 else 0x10000000
        for name in self.delay_imports:
            place = names + len(text) + (base if self.absolute else 0)
            second += struct.pack("<8I", 0 if self.absolute else 1, place, 0, address, 0, 0, 0, 0)
            text += name.encode("latin-1") + b"\0"
        return bytes(16) + first + bytes(20) + second + bytes(32) + text, imports, delay

    def _optional(self, headers_size: int, imports: int, delay: int) -> bytes:
        if self.bits == 64:
            base = _BASE % (1 << 32) if self.absolute else _BASE
            start = struct.pack("<H22xQII16xII", 0x20B, base, _PAGE, _UNIT, 0, headers_size).ljust(108, b"\0")
        else:
            start = struct.pack("<H26xIII16xII", 0x10B, 0x10000000, _PAGE, _UNIT, 0, headers_size).ljust(92, b"\0")
        directories = {1: imports, 13: delay}
        return start + struct.pack("<I", 16) + b"".join(struct.pack("<II", directories.get(n, 0), 0) for n in range(16))


def _up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
