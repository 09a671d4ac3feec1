"""Proves of many members of a wheel, for some 40 KB each, that something is in no section name and no needed name.

The names of all sections are strings of .shstrtab, in the last few KB of most libraries; whatever a library needs is a
string of .dynstr, in the first few KB of most, or the end of such a string. Of the section headers only the fields are
read that say where these two are. So nothing has to be certain of the dynamic section, which is in between, nor of
the many bytes of the section headers that are copies of earlier bytes.
"""

from collections.abc import Callable, Generator, Sequence
from typing import NamedTuple

from wheel_checks.errors import FormatError
from wheel_checks.facts.archive.facts import Archive
from wheel_checks.facts.elf.dynamic_strings import names_at, place_of_strings
from wheel_checks.facts.elf.member import PartialMember
from wheel_checks.facts.elf.reading import EXTRA_ROOM, FIRST_HEAD
from wheel_checks.formats.elf.bytes import BytesNeeded
from wheel_checks.formats.elf.header import ElfHeader, TableSizes, read_header, table_sizes
from wheel_checks.formats.elf.reader import Reader, ask_both
from wheel_checks.formats.elf.section_names import may_be_own_name, may_name_gpu_code
from wheel_checks.formats.elf.sections import MAX_NAMES, read_place
from wheel_checks.formats.zip.directory import LOCAL_HEADER_SIZE, Member
from wheel_checks.formats.zip.local_header import read_local_header
from wheel_checks.formats.zip.member_data import DEFLATED
from wheel_checks.sources.byte_source import ByteSource

_MOST = 256 * 1024  # compressed bytes of head and tail of one member
_WHOLE = 48 * 1024  # compressed bytes up to which a member is read at once

Matters = Callable[[str], bool]
"""True for a string of .dynstr that may be, or end in, the name of a library that is searched for."""
Search = Generator[list[tuple[int, int]], list[bytes], bool]
"""Yields ``(offset in the archive, length)`` of what to read next, takes the bytes, and returns what is proven."""


class Absence(NamedTuple):
    """Whether it is proven that a member has nothing of what is searched for, and how many bytes that took."""

    proven: bool
    bytes_read: int


def rule_out(source: ByteSource, archive: Archive, members: Sequence[Member], matters: Matters) -> list[Absence]:
    """Of each member whether it is proven to have no section of GPU code and to need nothing that ``matters``.

    Of each at most some 128 KB are read. What is not proven says nothing: the member may be no ELF file, or be out of
    reach. What all need next is requested together. Raises SourceError when bytes cannot be had.
    """
    found, read = [False] * len(members), [0] * len(members)
    going: list[tuple[int, Search, list[tuple[int, int]]]] = []

    def go_on(number: int, search: Search, pieces: list[bytes] | None) -> None:
        try:
            going.append((number, search, search.send(pieces) if pieces is not None else next(search)))
        except StopIteration as end:
            found[number] = end.value
        except FormatError:
            pass  # whoever reads the member completely says what is wrong with it

    for number, member in enumerate(members):
        go_on(number, _search(member, archive.end.directory_offset, matters), None)
    while going:
        current, going = going, []
        pieces = iter(source.read_many([span for *_, ranges in current for span in ranges]))
        for number, search, ranges in current:
            read[number] += sum(length for _, length in ranges)
            go_on(number, search, [next(pieces) for _ in ranges])
    return list(map(Absence, found, read))


def _search(member: Member, directory_offset: int, matters: Matters) -> Search:
    if member.method != DEFLATED or member.is_encrypted:
        return False
    size = member.compressed_size
    body = size if size <= _WHOLE else FIRST_HEAD
    length = min(LOCAL_HEADER_SIZE + len(member.raw_name) + EXTRA_ROOM + body, directory_offset - member.header_offset)
    if length <= 0:
        return False
    (head,) = yield [(member.header_offset, length)]
    start = read_local_header(head).header_size
    partial = PartialMember(member, member.header_offset + start)
    if partial.data_offset + size > directory_offset:
        return False
    partial.begin(head[start : start + body])
    while True:
        try:
            return _is_ruled_out(partial, matters)
        except BytesNeeded as needed:
            wish = partial.wish_for(needed.ranges)
        if sum(wish) > max(_MOST, body):
            return False
        end = partial.data_offset + size
        ranges = [
            (partial.data_offset + partial.head_packed, wish.head - partial.head_packed),
            (end - wish.tail, wish.tail - len(partial.tail_packed)),
        ]
        if not any(length for _, length in ranges):
            return False
        head, tail = yield ranges
        if head:
            partial.extend_head(head)
        if tail:
            partial.extend_tail(tail)


def _is_ruled_out(partial: PartialMember, matters: Matters) -> bool:
    """Raises BytesNeeded while that is open, and FormatError for what makes no sense."""
    header, reader = read_header(partial)
    sizes = table_sizes(reader, header)
    if not 0 < sizes.section_names < sizes.sections:
        return False
    _, strings = ask_both(lambda: _check_names(partial, reader, header, sizes), lambda: place_of_strings(partial))
    if strings is None:
        return False
    names = names_at(partial, strings)
    return isinstance(names, tuple) and not any(map(matters, names))


def _check_names(partial: PartialMember, reader: Reader, header: ElfHeader, sizes: TableSizes) -> None:
    """Raises FormatError when a section may have the name of GPU code, BytesNeeded when too little is known of them."""
    own, offset, size = read_place(reader, header, sizes.section_names)
    if not own < size <= MAX_NAMES or offset + size > partial.size:
        raise FormatError("the section with the names is outside of the file")
    known = _known(partial, offset, size)
    if not may_be_own_name(known[own:]):
        raise FormatError("the section with the names has an unexpected name")
    if may_name_gpu_code(known):
        if None in known:
            raise BytesNeeded([(offset, size)])
        raise FormatError("a section may hold GPU code")


def _known(partial: PartialMember, offset: int, size: int) -> Sequence[int | None]:
    """These bytes, None for each that is not certain. Raises BytesNeeded when they are outside of head and tail."""
    try:
        return list(partial.read(offset, size))
    except BytesNeeded:
        if known := partial.partly_known(offset, size):
            return known
        raise
