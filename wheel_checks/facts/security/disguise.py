"""Native code under the names of data, by the first bytes of every member."""

from dataclasses import dataclass

from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.archive.heads import read_heads
from wheel_checks.facts.archive.inflation import unpackable
from wheel_checks.formats.native_signature import HEAD, is_native_name, native_kind
from wheel_checks.formats.zip.directory import MOST_FAULTS, Member
from wheel_checks.sources.byte_source import ByteSource

_PACKED = 1024  # bytes of a member: those of a program's header inflate to more than HEAD
_SHOWN = 64  # bytes that show what a file is
_SMALLEST = 20  # bytes that an ELF header has at least until its machine is known


@dataclass(frozen=True, slots=True)
class Disguised:
    """``found`` are ``(member, kind)`` of programs and libraries with other names; the last may count the others.

    The kind is "" where the start of a member could not be inflated from the little that is read of it.
    """

    found: tuple[tuple[str, str], ...]


def read_disguised(source: ByteSource, archive: Archive) -> Disguised:
    """What a little of every member shows, for a local file. Raises SourceError when bytes cannot be had."""
    members = [
        member
        for member in unpackable(archive.members)
        if member.size >= _SMALLEST and not member.is_directory and not is_native_name(member.name)
    ]
    heads = read_heads(source, archive, members, _PACKED, HEAD)
    found = [(member.name, kind) for member, head in heads if (kind := native_kind(head)) or _is_hidden(member, head)]
    more = [("", f"and {len(found) - MOST_FAULTS:,} more members")] if len(found) > MOST_FAULTS else []
    return Disguised((*found[:MOST_FAULTS], *more))


def _is_hidden(member: Member, head: bytes) -> bool:
    return len(head) < min(member.size, _SHOWN)
