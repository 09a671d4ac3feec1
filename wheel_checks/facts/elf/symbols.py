"""The symbols of every library of a wheel: what each needs of others and what it defines."""

from dataclasses import dataclass

from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.facts.elf.exports import read_member_front
from wheel_checks.facts.elf.native_members import is_library
from wheel_checks.facts.elf.reading import Effort, read_member_elfs
from wheel_checks.formats.elf.file import LINKAGE_PARTS, Missing, Part
from wheel_checks.formats.elf.linkage import Exports, Imports
from wheel_checks.formats.elf.versions import SymbolVersions
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable
from wheel_checks.sources.byte_source import ByteSource

EFFORT = Effort(12 << 20, 0, 0)  # compressed bytes; most take 30 KB, the largest libraries 5 MB
STREAMED = 64 << 20  # compressed bytes up to which a library is streamed whose ends do not say


@dataclass(frozen=True, slots=True)
class MemberSymbols:
    """What one member needs and defines; ``Missing`` what is out of reach, None what it does not have.

    ``versions`` says of which library a version is; None where that was not read.
    """

    member: str
    imports: Imports | Missing | None
    exports: Exports | Missing | None
    versions: SymbolVersions | None = None


def read_symbols(source: ByteSource, archive: Archive) -> tuple[MemberSymbols, ...]:
    """The symbols of all libraries, each content once. What is not an ELF file is omitted. Raises SourceError."""
    readable = {id(member) for member in unpackable(archive.members)}
    copies: dict[tuple[int, ...], list[Member]] = {}
    for member in archive.members:
        if is_library(member.name) and id(member) in readable:
            content = (member.crc32, member.size, member.compressed_size, member.method, member.flags)
            copies.setdefault(content, []).append(member)
    found: list[MemberSymbols] = []
    left: list[list[Member]] = []
    for members in copies.values():
        front = read_member_front(source, archive, members[0])
        if front is None:
            left.append(members)
        else:
            found += [MemberSymbols(m.name, front.imports, front.exports, front.versions) for m in members]
    parts = LINKAGE_PARTS | {Part.VERSIONS}
    elfs = read_member_elfs(source, archive, [m[0] for m in left], parts, effort=EFFORT, stream=STREAMED)
    for members, elf in zip(left, elfs, strict=True):
        if not isinstance(elf.facts, Unavailable):
            versions = None if isinstance(elf.facts.versions, Missing) else elf.facts.versions
            found += [MemberSymbols(m.name, elf.facts.imports, elf.facts.exports, versions) for m in members]
    return tuple(found)
