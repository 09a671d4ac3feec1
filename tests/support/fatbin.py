"""Synthetic fat binaries, for tests: ``fat_binary("sm_90", Image("compute_90", compression="zstd"))``."""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

MAGIC = b"\x50\xed\x55\xba"
_KINDS = {"compute": 1, "sm": 2, "lto": 8}
_FIRST_BYTES = {"": b"\x7fELF", "zstd": b"\x28\xb5\x2f\xfd", "lz4": b"\xa2\x7fEL"}
_COMPRESSION_FLAGS = {"": 0, "zstd": 0x8000, "lz4": 0x2000}
_SUFFIX_FLAGS = {"": 0, "a": 0x100000, "f": 0x200000}


TOOLKIT_NOTE = b"Cuda compilation tools, release %b, V12.8.93\0"  # of .note.nv.tkinfo


def cubin_head(abi: int, e_version: int, flags: int = 0) -> bytes:
    """The ELF header of a cubin."""
    ident = b"\x7fELF\x02\x01\x01\x33" + bytes([abi]) + bytes(7)
    return ident + struct.pack("<HHIQQQI", 2, 190, e_version, 0, 0, 0, flags).ljust(48, b"\0")


@dataclass(frozen=True)
class Image:
    """One entry: its target ("sm_100a", "compute_90"; "kind16_100" for kind 16), and the size of its payload.

    ``ptx_isa`` is the version of the instruction set, of PTX alone. ``abi`` is that of a cubin, and ``release`` the
    CUDA that it names: in e_version if its ABI version is 7, else in a note.
    """

    label: str
    size: int = 200
    compression: str = ""
    header_size: int = 64
    ptx_isa: str = "9.0"
    abi: int = 8
    release: str = ""

    def build(self) -> bytes:
        """Header and payload, as nvcc writes them."""
        match = re.fullmatch(r"(sm|compute|lto|kind(\d+))_(\d+)([af]?)", self.label)
        assert match is not None, self.label
        kind = int(match[2]) if match[2] else _KINDS[match[1]]
        padded = -(-self.size // 8) * 8
        stored, inflated = (self.size, 4 * self.size) if self.compression else (0, 0)
        flags = 0x11 | _COMPRESSION_FLAGS[self.compression] | _SUFFIX_FLAGS[match[4]]
        options = 64 if self.header_size > 64 else 0
        major, minor = map(int, self.ptx_isa.split(".")) if kind == 1 else (1, self.abi)
        header = struct.pack(
            "<HHIQIIHHIIIQQQ",
            *(
                kind,
                0x101,
                self.header_size,
                padded,
                stored,
                options,
                minor,
                major,
                int(match[3]),
                0,
                0,
                flags,
                0,
                inflated,
            ),
        )
        payload = _FIRST_BYTES[self.compression] + b"\xa5" * self.size
        if self.release and self.abi == 7:
            payload = cubin_head(7, int(self.release.replace(".", ""))) + payload
        elif self.release:
            payload = payload[:64] + TOOLKIT_NOTE % self.release.encode() + payload
        return header.ljust(self.header_size, b"o") + payload[: self.size].ljust(padded, b"\0")


def fat_binary(*images: Image | str) -> bytes:
    """One container with these entries."""
    entries = b"".join((Image(image) if isinstance(image, str) else image).build() for image in images)
    return MAGIC + struct.pack("<HHQ", 1, 16, len(entries)) + entries


def section(*containers: bytes, alignment: int = 8) -> bytes:
    """The section that a linker makes of these containers."""
    return b"".join(container.ljust(-(-len(container) // alignment) * alignment, b"\0") for container in containers)
