"""The first bytes of native members: ELF, PE or Mach-O, the machine, and the oldest macOS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from packaging.tags import Tag

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.heads import read_heads
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.formats.elf.bytes import BytesNeeded, WholeFile
from wheel_checks.formats.elf.header import read_header
from wheel_checks.formats.macho import MachSlice, read_mach_slices
from wheel_checks.formats.native_signature import native_kind
from wheel_checks.formats.pe.header import MACHINES
from wheel_checks.formats.zip.directory import Member
from wheel_checks.sources.byte_source import ByteSource

MOST = 400  # members whose first bytes are read; mypy 2.4.1 has 233
_HEAD = 4 * 1024  # compressed bytes: the load commands of a library with forty needs
_INFLATED = 64 * 1024
_LIBRARY = re.compile(r"\.(?:so(?:\.[\w.]+)?|dylib|pyd|dll|exe)$", re.IGNORECASE)
_OTHER_SYSTEM = re.compile(r"(?:macosx|win)(?:_|32)")


@dataclass(frozen=True, slots=True)
class NativeHead:
    """One member: ``kind`` is "ELF" or "PE" (with ``machine``), "Mach-O" (with ``slices``) or ""."""

    member: str
    kind: str
    machine: str = ""
    slices: tuple[MachSlice, ...] = ()


@dataclass(frozen=True, slots=True)
class NativeHeads:
    """The members that are named like libraries and programs; of ``unread`` ones nothing is known."""

    heads: tuple[NativeHead, ...] = ()
    unread: int = 0


def is_for_any(tags: Iterable[Tag]) -> bool:
    """True for wheels that every platform accepts."""
    return any(tag.platform == "any" for tag in tags)


def is_for_other_system(tags: Iterable[Tag]) -> bool:
    """True for wheels of macOS and Windows."""
    return any(_OTHER_SYSTEM.match(tag.platform) for tag in tags)


def read_native_heads(source: ByteSource, archive: Archive) -> NativeHeads:
    """The heads of native members, in the order of the archive. Raises SourceError when bytes cannot be had."""
    named = [m for m in unpackable(archive.members) if _LIBRARY.search(m.name) and not m.is_directory]
    chosen = named[:MOST]
    heads = [_native_head(member, head) for member, head in read_heads(source, archive, chosen, _HEAD, _INFLATED)]
    return NativeHeads(tuple(heads), len(named) - len(chosen))


def _native_head(member: Member, head: bytes) -> NativeHead:
    kind = native_kind(head)
    try:
        slices = read_mach_slices(head) if kind == "Mach-O" else ()
        if kind == "ELF":
            return NativeHead(member.name, kind, read_header(WholeFile(head))[0].machine)
    except (FormatError, BytesNeeded):
        return NativeHead(member.name, "")
    if kind != "PE":
        return NativeHead(member.name, kind, slices=slices)
    offset = int.from_bytes(head[60:64], "little") + 4
    number = int.from_bytes(head[offset : offset + 2], "little")
    return NativeHead(member.name, kind, MACHINES.get(number, f"{number:#06x}"))
