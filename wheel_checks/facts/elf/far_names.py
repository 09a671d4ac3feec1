"""Finds the names of sections that lie far from their headers, in windows into the middle of a deflated member.

lld writes .symtab, .shstrtab and .strtab in this order, so that the names of symbols, megabytes of text, stand between
the names of the sections and their headers, which are in the tail. Going back from there, a window that inflates to
text is after what is sought, and any other is before it. The names are recognised by what the headers say of them:
how long they are all together, and where .shstrtab, .dynsym, .dynamic and others begin.
"""

from collections.abc import Generator, Sequence
from contextlib import suppress

from wheel_checks.errors import FormatError
from wheel_checks.facts.elf.member import PartialMember
from wheel_checks.formats.elf.bytes import BytesNeeded
from wheel_checks.formats.elf.header import read_header
from wheel_checks.formats.elf.section_names import complete_names, find_names
from wheel_checks.formats.elf.sections import MAX_NAMES, HeaderRow, read_header_rows
from wheel_checks.formats.zip.deflate_blocks import Inflated
from wheel_checks.formats.zip.deflate_window import inflate_window
from wheel_checks.sources.byte_source import ByteSource

_MOST_WINDOWS = 18
_PROBE = 48 * 1024  # compressed bytes of a window that mostly shows on which side the names are
_AROUND = 96 * 1024  # compressed bytes before and after the place where they must be
_PROBE_MARGIN = 8 * 1024  # bytes that must be sound after the start of a window; that it lies is shown by what is found
_DENSER = 0.6  # names before the tail are packed more densely than it; a guess, from which the search begins
_OUTPUT = 4 * 1024 * 1024  # bytes inflated of one window
_NO_TEXT = 0.03  # the share of other bytes than printable ones and zeros up to which a window is text
_ONE_UNLESS_TEXT = bytes(byte != 0 and not 0x20 <= byte < 0x7F for byte in range(256))
_ONE_IF_ZERO = bytes(byte == 0 for byte in range(256))

Search = Generator[tuple[int, int], bytes, None]
"""Yields ``(offset in the compressed data, length)`` of what to read next, and takes the bytes."""


def read_far_names(source: ByteSource, members: Sequence[PartialMember]) -> list[int]:
    """Find the names of each member's sections, if its headers are known and they lie before its tail.

    What is found is among ``learned`` then. Returns the bytes that were read of each; of one member at most 18 windows
    of some 100 KB. Those of all members are requested together. Raises SourceError when bytes cannot be had.
    """
    searches: list[tuple[int, PartialMember, Search, tuple[int, int]]] = []
    for number, member in enumerate(members):
        search = _search(member)
        if (wanted := next(search, None)) is not None:
            searches.append((number, member, search, wanted))
    read = [0] * len(members)
    while searches:
        pieces = source.read_many([(m.data_offset + wanted[0], wanted[1]) for _, m, _, wanted in searches])
        going, searches = searches, []
        for (number, member, search, wanted), piece in zip(going, pieces, strict=True):
            read[number] += wanted[1]
            with suppress(StopIteration):
                searches.append((number, member, search, search.send(piece)))
    return read


def _search(member: PartialMember) -> Search:
    tail = member.tail_start
    try:
        header, reader = read_header(member)
        rows, index = read_header_rows(reader, header)
    except (BytesNeeded, FormatError):
        return
    if tail is None or not 0 < index < len(rows) or not member.head_packed <= tail[0]:
        return
    names = rows[index]
    size = member.member.compressed_size
    low, high = member.head_packed, tail[0]
    if names.offset + names.size > tail[1]:
        return
    guess = high - int(_DENSER * (tail[1] - names.offset) * (size - tail[0]) / max(1, member.size - tail[1]))
    step = _PROBE
    for _ in range(_MOST_WINDOWS):
        last = high - low <= _AROUND
        start, end = (low - _AROUND, high + _AROUND) if last else (guess - _PROBE, guess + _PROBE)
        start, end = max(0, start), min(size, max(end, start + 2 * _PROBE))
        piece = yield start, end - start
        try:
            window = inflate_window(piece, limit=_OUTPUT, margin=_PROBE_MARGIN)
        except FormatError:
            if last:
                return
            guess += (end - start) // 2 if guess < (low + high) // 2 else (start - end) // 2
            continue
        if _take(member, rows, index, window) or last:
            return
        before = high
        if _is_text(window):
            high = min(high, start + window.start // 8 + 1)
            guess = high - step if low == member.head_packed else (low + high) // 2
        else:
            low = max(low, end)
            guess = low + step if before == tail[0] else (low + high) // 2
        step *= 3
        guess = min(max(guess, low), high)


def _take(member: PartialMember, rows: Sequence[HeaderRow], index: int, window: Inflated) -> bool:
    names = rows[index]
    for place in find_names(rows, index, window.data):
        found = complete_names(rows, window.partly_known(place, place + names.size))
        if found is not None:
            member.learned.add(names.offset, found)
            return True
    return False


def learn_near_names(member: PartialMember) -> None:
    """Learn the names of sections that are in the tail, though some of their bytes are not certain."""
    try:
        header, reader = read_header(member)
        rows, index = read_header_rows(reader, header)
    except (BytesNeeded, FormatError):
        return
    if 0 < index < len(rows) and rows[index].size <= MAX_NAMES:
        known = member.partly_known(rows[index].offset, rows[index].size)
        found = complete_names(rows, known) if known else None
        if found is not None:
            member.learned.add(rows[index].offset, found)


def _is_text(window: Inflated) -> bool:
    """True when nearly all bytes that are certain are printable or zeros."""
    certain = int.from_bytes(window.unknown.translate(_ONE_IF_ZERO), "little")
    other = int.from_bytes(window.data.translate(_ONE_UNLESS_TEXT), "little")
    return (certain & other).bit_count() <= _NO_TEXT * certain.bit_count()
