"""The members of a wheel that may be ELF files, and their facts."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace

from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.elf.member_elf import MemberElf, ReadMode
from wheel_checks.facts.elf.reading import THOROUGH, Effort, read_member_elfs
from wheel_checks.formats.elf.file import LOADER_PARTS, Part
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

STREAMED = 0  # compressed bytes up to which a member is streamed when head and tail do not say enough

_NOT_READ = Unavailable("its compression ratio is extreme, or it shares bytes with another member")
_LIBRARY = re.compile(r"\.so(?:\.[\w.]+)?$")
_SMALLEST = 64  # bytes of an ELF header
_UNIX_EXECUTABLE = 0o111


def is_library(name: str) -> bool:
    """True for names such as libfoo.so, libfoo.so.1.2 and _C.cpython-312-x86_64-linux-gnu.so."""
    return bool(_LIBRARY.search(name))


def may_be_elf(member: Member) -> bool:
    """True for libraries by their name, and for programs such as ptxas: executable, without an extension."""
    if member.is_directory or member.size < _SMALLEST:
        return False
    executable = member.create_system == 3 and (member.external_attributes >> 16) & _UNIX_EXECUTABLE
    return is_library(member.name) or bool(executable and "." not in member.name.rpartition("/")[2])


def read_native_members(
    source: ByteSource,
    archive: Archive,
    *,
    effort: Effort = THOROUGH,
    whole: bool = False,
    programs: bool = True,
    parts: Collection[Part] = LOADER_PARTS,
    stream_names: int = 0,
) -> tuple[MemberElf, ...]:
    """The loader's facts of every ELF file of the wheel; ``whole`` streams parts that are outside of head and tail.

    ``parts`` may be other facts than the loader's; of a library without them up to ``stream_names`` bytes are streamed
    for the names that it may need. A member that is only named like a library is included as
    Unavailable; other members that are no ELF files are not, nor are programs unless wanted. Copies, which wheels have
    instead of symbolic links, are read once (but for ``whole``), by the directory's checksums. Members that inflate
    absurdly, or share bytes with others, are not read. Raises SourceError.
    """
    wanted = [m for m in archive.members if may_be_elf(m) and (programs or is_library(m.name))]
    readable = {id(m) for m in unpackable(archive.members)}
    members = [m for m in wanted if id(m) in readable]
    stream = max((member.compressed_size for member in members), default=0) if whole else STREAMED
    originals: dict[tuple[int, ...], Member] = {}
    for member in members:
        originals.setdefault(_content(member, whole=whole), member)
    read = read_member_elfs(
        source, archive, list(originals.values()), parts, effort=effort, stream=stream, stream_names=stream_names
    )
    elfs = dict(zip(originals, read, strict=True))
    found = [_as(member, elfs.get(_content(member, whole=whole))) for member in wanted]
    return tuple(item for item in found if is_library(item.member.name) or not isinstance(item.facts, Unavailable))


def _content(member: Member, *, whole: bool) -> tuple[int, ...]:
    """The same for members that have the same content, or for ``whole`` the same place."""
    content = (member.crc32, member.size, member.compressed_size, member.method, member.flags)
    return (*content, member.header_offset) if whole else content


def _as(member: Member, elf: MemberElf | None) -> MemberElf:
    """The facts of ``elf``, which is ``member`` or a copy of it, as those of ``member``; None when it was not read."""
    if elf is None:
        return MemberElf(member, _NOT_READ, ReadMode.HEAD, 0)
    return elf if elf.member is member else replace(elf, member=member, bytes_read=0)
