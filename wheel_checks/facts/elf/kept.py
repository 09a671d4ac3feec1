"""ELF facts of the members of an archive as they are kept: with the number of each member in place of the member.

So what is decoded refers to the very members of the archive, which other code distinguishes by identity.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.kept import AsJson
from wheel_checks.facts.elf.member_elf import MemberElf, Way
from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable


@dataclass(frozen=True, slots=True)
class _Numbered:
    """A :class:`MemberElf` whose member is given by its place in the central directory."""

    number: int
    facts: ElfFacts | Unavailable
    way: Way
    bytes_read: int
    possible_names: tuple[str, ...] | Unavailable


_ENCODING = AsJson(tuple[_Numbered, ...])


class MemberElfs:
    """The encoding of the ELF facts of ``members``, which are all members of one archive."""

    def __init__(self, members: Sequence[Member]) -> None:
        self._members = members

    def encode(self, value: tuple[MemberElf, ...]) -> bytes:
        """The bytes."""
        numbers = {id(member): number for number, member in enumerate(self._members)}
        return _ENCODING.encode(
            tuple(
                _Numbered(numbers[id(elf.member)], elf.facts, elf.way, elf.bytes_read, elf.possible_names)
                for elf in value
            )
        )

    def decode(self, data: bytes) -> tuple[MemberElf, ...]:
        """The facts. Raises FormatError."""
        found = _ENCODING.decode(data)
        if any(not 0 <= item.number < len(self._members) for item in found):
            raise FormatError("a kept fact is of a member that the archive does not have")
        return tuple(
            MemberElf(self._members[item.number], item.facts, item.way, item.bytes_read, item.possible_names)
            for item in found
        )
