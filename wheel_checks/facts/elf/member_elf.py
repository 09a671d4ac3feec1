"""The facts of one ELF file of an archive, apart from their readers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from wheel_checks.formats.elf.file import ElfFacts
from wheel_checks.formats.zip.directory import Member
from wheel_checks.model import Unavailable

NOT_SOUGHT = Unavailable("the names that are possible are sought only where the dynamic section is missing")


class ReadMode(StrEnum):
    """How a member was read: by its ranges (stored), whole, by its head, also by its tail, or also streamed."""

    RANGES = "ranges"
    WHOLE = "whole"
    HEAD = "head"
    TAIL = "tail"
    STREAMED = "streamed"


@dataclass(frozen=True, slots=True)
class MemberElf:
    """The facts of one member, and the bytes read for them.

    ``facts`` is Unavailable for a file that is not ELF or is corrupt. Parts beyond the allowed effort are ``Missing``
    in it, with the ranges that they need; all others are certain. When the dynamic section is missing,
    ``possible_names`` are the strings of .dynstr that could be libraries, search paths or symbol versions: every need
    of the file is one of these (or, as linkers merge strings, the end of one); it may need fewer. ``bytes_read`` are
    the bytes of the archive that were requested, whether or not they were cached.
    """

    member: Member
    facts: ElfFacts | Unavailable
    mode: ReadMode
    bytes_read: int
    possible_names: tuple[str, ...] | Unavailable = NOT_SOUGHT

    @property
    def complete(self) -> bool:
        """True when every part that was requested is there."""
        return not isinstance(self.facts, Unavailable) and not self.facts.missing
