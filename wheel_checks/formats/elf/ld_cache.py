"""``/etc/ld.so.cache``: where ldconfig found which library (glibc, sysdeps/generic/dl-cache.h).

Only the new format, "glibc-ld.so.cache1.1", which glibc writes since 2.2, alone or after the old one.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass

from wheel_checks.errors import FormatError

MAGIC = b"glibc-ld.so.cache1.1"
OLD_MAGIC = b"ld.so-1.7.0\0"
MAX_SIZE = 16 * 1024 * 1024  # bytes; that of a desktop with everything installed has some 200 KB
MAX_PATH = 4096  # bytes, PATH_MAX of Linux
_OLD_ENTRY = 12  # bytes
_BIG_ENDIAN = 3  # cache_file_new_flags_endian_big; 0 (not known) and 2 are little on the machines of interest
_HEADER, _ENTRY = "20sII4sIIII", "iIIIQ"

_KINDS = {  # the flags of an entry (FLAG_ELF_LIBC6 and what it requires) -> the machine as wheel platform tags name it
    0x0003: "i686",
    0x0303: "x86_64",
    0x0403: "s390x",
    0x0503: "ppc64le",
    0x0803: "x32",
    0x0903: "armv7l",
    0x0A03: "aarch64",
    0x1003: "riscv64",
    0x1203: "loongarch64",
}


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """One library. ``machine`` is as wheel platform tags name it, or "flags 0x...".

    ``hwcaps`` is True for a variant that only processors with certain features load (glibc-hwcaps).
    """

    soname: str
    path: str
    machine: str
    hwcaps: bool


def parse_ld_cache(data: bytes) -> tuple[CacheEntry, ...]:
    """The entries in the order of the file, which is that of preference among entries of one name.

    Raises FormatError, naming the field, for what is no such cache, is cut off, or claims more than the file can hold.
    Time and memory are bounded by a multiple of the size of the file.
    """
    if len(data) > MAX_SIZE:
        raise FormatError(f"ld.so.cache has {len(data)} bytes", expected=f"at most {MAX_SIZE}")
    start = _start(data)
    order = ">" if data[start + 28 : start + 29] == bytes([_BIG_ENDIAN]) else "<"
    header, entry = struct.Struct(order + _HEADER), struct.Struct(order + _ENTRY)
    if len(data) < start + header.size:
        raise FormatError(f"ld.so.cache ends after {len(data)} bytes", expected=f"a header of {header.size} bytes")
    _, count, _, _, _, _, _, _ = header.unpack_from(data, start)
    first = start + header.size
    if first + count * entry.size > len(data):
        raise FormatError(
            f"nlibs of ld.so.cache is {count}", expected=f"entries of {entry.size} bytes inside its {len(data)} bytes"
        )
    budget = 4 * len(data)  # entries may share strings, and do, but not so many
    entries = []
    for flags, key, value, _, hwcap in entry.iter_unpack(data[first : first + count * entry.size]):
        soname, path = _string(data, start + key, "key"), _string(data, start + value, "value")
        budget -= len(soname) + len(path)
        if budget < 0:
            raise FormatError("the entries of ld.so.cache share their strings too often", expected="a string for each")
        machine = _KINDS.get(flags, f"flags {flags & 0xFFFFFFFF:#x}")
        entries.append(CacheEntry(soname, path, machine, bool(hwcap)))
    return tuple(entries)


def libraries_of(entries: Iterable[CacheEntry], machine: str) -> dict[str, tuple[str, ...]]:
    """The paths by soname for one machine, the preferred first.

    Variants for certain processors come last, for which one would be taken cannot be known without the processor; they
    are builds of the same library.
    """
    found: dict[str, list[str]] = {}
    for entry in sorted(entries, key=lambda entry: entry.hwcaps):
        if entry.machine == machine:
            found.setdefault(entry.soname, []).append(entry.path)
    return {soname: tuple(paths) for soname, paths in found.items()}


def _start(data: bytes) -> int:
    """Where the new format begins: at once, or after the old one, aligned to 8 bytes."""
    if data.startswith(MAGIC):
        return 0
    if data.startswith(OLD_MAGIC) and len(data) >= len(OLD_MAGIC) + 4:
        count = int.from_bytes(data[len(OLD_MAGIC) : len(OLD_MAGIC) + 4], "little")
        start = (len(OLD_MAGIC) + 4 + count * _OLD_ENTRY + 7) & ~7
        if data[start : start + len(MAGIC)] == MAGIC:
            return start
    raise FormatError(f"ld.so.cache starts with {data[:20]!r}", expected=repr(MAGIC.decode()))


def _string(data: bytes, offset: int, field: str) -> str:
    end = data.find(b"\0", offset, offset + MAX_PATH)
    if end < 0:
        raise FormatError(
            f"{field} of an entry of ld.so.cache points to byte {offset}",
            expected=f"a string inside the file, shorter than {MAX_PATH} bytes",
        )
    return data[offset:end].decode("utf-8", "backslashreplace")
