"""The end of a raw deflate stream (RFC 1951) from its last bytes alone, with what is certain told apart.

A deflate stream is meant to be read from its start, but every block with dynamic Huffman codes begins with a header
(3.2.7) that few bit positions satisfy. From such a position the stream can be inflated; only copies out of the 32 KiB
before it are unknown. So it is inflated twice, with two windows that differ in every byte: where both results agree, no
byte came from the window.

A wrong start is told by what follows it: the codes must be complete, every later block sound, and the last one must end
in the last byte. Chance does not satisfy that, but data might: a final stored block may hold another deflate stream,
which ends where the outer one ends. A stored block has at most 65,535 bytes, so starts that near the end are not taken
unless the caller has a check of its own. A stream made to deceive can still do so: who must know reads it all.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from wheel_checks.errors import FormatError

MAX_OUTPUT = 32 * 1024 * 1024  # bytes inflated
LARGEST_STORED_BLOCK = 5 + 65_535  # bytes with its header (3.2.4)

_MAX_ATTEMPTS = 16_384  # starts tried; 1 MiB of machine code has about 6,000 that look like a header
_MAX_WASTE = 32 * 1024 * 1024  # bytes inflated from starts that then prove wrong
_SLICE = 16 * 1024  # bytes whose bit positions are judged at once: few enough that the numbers stay in the cache
_LONGEST_HEADER = 10  # bytes that hold a block's type, its counts and its code lengths: 3 + 14 + 19 * 3 bits
_FIRST_PIECE = 256  # compressed bytes inflated at first: more than nearly every wrong start survives
_PIECE = 16 * 1024  # compressed bytes inflated at once from then on
_PIECE_OUTPUT = 256 * 1024  # bytes that come out at once: the most that a wrong start costs uncounted


@dataclass(frozen=True)
class Tail:
    """The end of a member: ``data`` begins at byte ``offset`` of the member and reaches to its end.

    What is certain of it is asked of the methods. ``attempts`` is the number of starts that were tried, ``compressed``
    what was searched, and ``start`` the bit in it where the block begins.
    """

    offset: int
    data: bytes = field(repr=False)
    attempts: int
    compressed: bytes = field(repr=False)
    start: int

    @cached_property
    def unknown(self) -> bytes:
        """One byte for each of ``data``: 0 where it is certain, else not 0."""
        other = int.from_bytes(self._other_data, "little")
        return (int.from_bytes(self.data, "little") ^ other).to_bytes(len(self.data), "little")

    @cached_property
    def _other_data(self) -> bytes:
        """``data`` behind the other window; only when asked for: a tail may begin behind all that is wanted."""
        return _inflate_from(self.compressed, self.start, _ONES, len(self.data))[0]

    def certain_runs(self) -> Iterator[tuple[int, bytes]]:
        """``(offset in the member, bytes)`` of each longest run of certain bytes, in order."""
        for run in re.finditer(rb"\0+", self.unknown):
            yield self.offset + run.start(), self.data[run.start() : run.end()]

    def certain(self, offset: int, length: int) -> bytes | None:
        """``length`` bytes at ``offset`` of the member; None unless each of them is certain."""
        start, end = offset - self.offset, offset - self.offset + length
        if not 0 <= start <= end <= len(self.data) or self.data[start:end] != self._other_data[start:end]:
            return None
        return self.data[start:end]


@dataclass(frozen=True, slots=True)
class _Window:
    """What stands in for the unknown 32 KiB before a start: 32 KiB of one byte, and the fixed code (3.2.6) of a literal
    of 9 bits, its first bit the lowest.
    """

    content: bytes
    literal_code: int


# 0x90 has the fixed code 110010000 and 0xFF has 111111111. The two windows differ in every byte, also when literals of
# the filler have moved them along.
_ZEROS = _Window(bytes(32 * 1024), 0b000010011)
_ONES = _Window(b"\xff" * (32 * 1024), 0b111111111)


def inflate_tail(compressed: bytes, size: int, *, limit: int = MAX_OUTPUT, margin: int = LARGEST_STORED_BLOCK) -> Tail:
    """Inflate from the earliest block header in ``compressed``, the last bytes of a deflated member of ``size`` bytes.

    Only a header over ``margin`` bytes before the end is taken; a lower margin than the default is for callers that
    compare the result with what else they know of the file. Raises FormatError when no start is found (the tail is too
    short, has no dynamic block, or is damaged), when more than ``size`` or ``limit`` bytes come out, or when the search
    takes too long. Takes 0.003 to 0.02 s for 256 KiB, and as long again when it is first asked what is certain; memory
    for about four times the result.
    """
    attempts, waste = 0, 0
    for start in _header_candidates(compressed, len(compressed) - margin):
        attempts += 1
        data, ended = _inflate_from(compressed, start, _ZEROS, limit)
        if ended:
            if len(data) > size:
                raise FormatError(f"the tail of the member inflates to {len(data)} bytes", expected=f"at most {size}")
            return Tail(size - len(data), data, attempts, compressed, start)
        waste += len(data)
        if attempts == _MAX_ATTEMPTS or waste > _MAX_WASTE:
            break
    raise FormatError(
        f"no start of a block was found in the last {len(compressed)} bytes of the member ({attempts} tried)",
        expected=f"a sound deflate stream with a dynamic block that begins over {margin} bytes before its end",
    )


def _inflate_from(compressed: bytes, start: int, window: _Window, limit: int) -> tuple[bytes, bool]:
    """What bit ``start`` inflates to behind ``window``, and whether that is a sound stream up to the last byte.

    The bits cannot be shifted to a byte boundary, since stored blocks are aligned in the original stream. Instead a
    block that ends just before ``start`` takes the place of what lies before it.
    """
    position, bit = divmod(start, 8)
    literals = (bit - 2) % 8
    filler_bits = 10 + 9 * literals
    joint = _filler(literals, window) | (compressed[position] >> bit) << filler_bits
    inflater = zlib.decompressobj(-zlib.MAX_WBITS, zdict=window.content)
    taken = position + 1 + _FIRST_PIECE
    pending = joint.to_bytes(filler_bits // 8 + 1, "little") + compressed[position + 1 : taken]
    pieces: list[bytes] = []
    room = limit + literals
    try:
        while True:
            pieces.append(inflater.decompress(pending, min(_PIECE_OUTPUT, room + 1)))
            room -= len(pieces[-1])
            if inflater.eof or room < 0:
                break
            pending = inflater.unconsumed_tail
            if not pending and len(pieces[-1]) < _PIECE_OUTPUT:  # nothing is held back
                pending = compressed[taken : taken + _PIECE]
                taken += _PIECE
                if not pending:
                    break
    except zlib.error:
        pass  # then the end was not reached
    at_end = inflater.eof and not inflater.unused_data and taken >= len(compressed)
    return b"".join(pieces)[literals:], at_end and room >= 0


def _filler(literals: int, window: _Window) -> int:
    """A block of 10 + 9 * ``literals`` bits with fixed codes, not the final one. The stream's first bit is the lowest.

    What it inflates to extends the window, so it too differs between windows.
    """
    block = 0b010  # not final, BTYPE 1
    for number in range(literals):
        block |= window.literal_code << (3 + 9 * number)
    return block  # seven zeros end the block


def _header_candidates(compressed: bytes, end: int) -> Iterator[int]:
    """The bit positions before byte ``end``, in order, where a dynamic block could begin; see :func:`_headers`."""
    for first in range(0, end, _SLICE):
        length = min(_SLICE, end - first)
        stream = int.from_bytes(compressed[first : first + length + _LONGEST_HEADER], "little")
        found = _headers(stream, 8 * length).to_bytes(length, "little")
        for byte in re.finditer(rb"[^\0]", found):
            bits = byte[0][0]
            yield from (8 * (first + byte.start()) + bit for bit in range(8) if bits >> bit & 1)


def _headers(stream: int, positions: int) -> int:
    """The positions, as bits of a number, at which a dynamic block header (3.2.7) could stand in ``stream``.

    There BTYPE is 2, there are at most 286 literal and 30 distance codes, and the code length code is complete: its
    Kraft sum is 1. All positions below ``positions`` are judged at once: bit p of each number is about position p.
    """
    every = (1 << positions) - 1

    def bit(distance: int) -> int:
        return stream >> distance & every

    found = _without(bit(2), bit(1))
    found = _without(found, bit(4) & bit(5) & bit(6) & bit(7))  # HLIT 30 or 31
    found = _without(found, bit(9) & bit(10) & bit(11) & bit(12))  # HDIST 30 or 31
    count = [bit(13), bit(14), bit(15), bit(16)]  # HCLEN: this and four more lengths follow
    total, overflow = [0] * 8, 0  # the Kraft sum in 128ths, lowest bit first
    for number in range(19):
        present = found if number < 4 else found & _at_least(count, number - 3, every)
        low, middle, high = (present & bit(17 + 3 * number + i) for i in range(3))
        carry = 0
        for place, term in enumerate([*_kraft_terms(low, middle, high), 0]):
            term_or_carry = term | carry  # never both: at most one term is set, and a carry comes from a lower one
            carry = total[place] & term_or_carry
            total[place] ^= term_or_carry
        overflow |= carry
    wrong = overflow | total[0] | total[1] | total[2] | total[3] | total[4] | total[5] | total[6]
    return _without(found & total[7], wrong)


def _kraft_terms(low: int, middle: int, high: int) -> list[int]:
    """Where a code has length 7, 6, ... 1, from the three bits of its length: it adds 1, 2, ... 64 to the sum."""
    both = high & middle
    only_high, only_middle = high ^ both, middle ^ both
    seven, five, three = both & low, only_high & low, only_middle & low
    return [seven, both ^ seven, five, only_high ^ five, three, only_middle ^ three, low ^ seven ^ five ^ three]


def _at_least(number: list[int], bound: int, every: int) -> int:
    """Where the number whose bits these are, lowest first, is at least ``bound``."""
    result = every
    for place, bits in enumerate(number):
        result = bits & result if bound >> place & 1 else bits | result
    return result


def _without(positions: int, others: int) -> int:
    return positions ^ (positions & others)
