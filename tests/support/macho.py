"""Small Mach-O files: ``mach_o("arm64", (11, 0))``, ``universal(mach_o("x86_64"), mach_o("arm64"))``."""

from __future__ import annotations

import struct

_PROCESSORS = {"x86_64": 0x01000007, "arm64": 0x0100000C}
_ALIGNMENT = 0x1000


def mach_o(
    machine: str = "arm64", macos: tuple[int, int] | None = (11, 0), *, old: bool = False, rest: int = 64
) -> bytes:
    """A library for one machine, with LC_BUILD_VERSION, LC_VERSION_MIN_MACOSX (``old``) or neither (None)."""
    commands = [struct.pack("<II", 0x1B, 24) + bytes(16)]  # LC_UUID
    if macos is not None:
        version = macos[0] << 16 | macos[1] << 8
        build = struct.pack("<IIIIII", 0x32, 24, 1, version, version, 0)
        commands.append(struct.pack("<IIII", 0x24, 16, version, version) if old else build)
    body = b"".join(commands)
    return (
        struct.pack("<IiiIIIII", 0xFEEDFACF, _PROCESSORS[machine], 0, 6, len(commands), len(body), 0, 0)
        + body
        + bytes(rest)
    )


def universal(*slices: bytes) -> bytes:
    """A universal binary of these files."""
    header, body = struct.pack(">II", 0xCAFEBABE, len(slices)), b""
    for data in slices:
        (processor,) = struct.unpack_from("<i", data, 4)
        body += bytes(-len(body) % _ALIGNMENT)
        header += struct.pack(">iiIII", processor, 0, _ALIGNMENT + len(body), len(data), 12)
        body += data
    return header + bytes(_ALIGNMENT - len(header)) + body
