"""Which machine code a file holds, by its first bytes: ELF, PE and Mach-O. And which names such files have."""

import re

HEAD = 4096
"""Bytes from the start of a file that are enough to recognise it."""

_MACH_O = (b"\xfe\xed\xfa\xce", b"\xfe\xed\xfa\xcf", b"\xce\xfa\xed\xfe", b"\xcf\xfa\xed\xfe")
_FAT, _FAT_64 = b"\xca\xfe\xba\xbe", b"\xca\xfe\xba\xbf"
_MOST_SLICES = 19  # of a universal file; Java classes begin alike, and have 43 or more in this place
_PROCESSORS = {3, 8, 20, 21, 22, 40, 42, 43, 62, 183, 243, 258}  # e_machine of what Python runs on (gABI, elf.h)
_LOADED = {2, 3}  # e_type: programs and shared libraries, not object files
_NAMES = re.compile(
    r"""(?:\.so(?:\.[\w.]+)?|\.pyd|\.dll|\.exe|\.dylib|\.jnilib|\.node|\.sys|\.ko|\.elf|\.out|\.xll|\.cpl|\.scr|\.mexa64
    |\.so[-_.]?[\w.-]*|\.abi3|\.o|\.a|\.lib|\.debug|\.dbg|\.dwo|\.mui|\.com|\.ocx|\.bundle|\.efi|\.tsp|\.drv
    |\.linux|\.windows|\.macos|\.darwin|\.osx)$""",
    re.VERBOSE | re.IGNORECASE,
)
_PLATFORM = re.compile(r"linux|darwin|macos|win(?:32|64|dows)|x86_64|amd64|aarch64|arm64|^\d+$", re.IGNORECASE)


def native_kind(head: bytes) -> str:
    """ELF, PE or Mach-O, for a program or a library of a processor; "" for anything else, GPU code included."""
    if head.startswith(b"\x7fELF") and len(head) >= 20:
        order = "big" if head[5] == 2 else "little"
        kind, machine = (int.from_bytes(head[at : at + 2], order) for at in (16, 18))  # type: ignore[arg-type]
        return "ELF" if kind in _LOADED and machine in _PROCESSORS else ""
    if head.startswith(b"MZ") and len(head) >= 64:
        offset = int.from_bytes(head[60:64], "little")
        return "PE" if head[offset : offset + 4] == b"PE\0\0" else ""
    if head.startswith((*_MACH_O, _FAT_64)):
        return "Mach-O"
    if head.startswith(_FAT) and 0 < int.from_bytes(head[4:8], "big") <= _MOST_SLICES:
        return "Mach-O"
    return ""


def is_native_name(name: str) -> bool:
    """True for the names that libraries and programs have: a known suffix, a suffix of a platform, or no suffix."""
    base = name.rpartition("/")[2]
    stem, dot, suffix = base.rpartition(".")
    return not dot or not stem or bool(_NAMES.search(base)) or bool(_PLATFORM.search(suffix))
