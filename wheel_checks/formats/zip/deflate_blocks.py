"""Starts in the middle of a raw deflate stream (RFC 1951): candidate block starts, and the data that follows.

A deflate stream is meant to be read from its start, but every block with dynamic Huffman codes starts with a header
(3.2.7) that few bit positions satisfy. From such a position the stream can be inflated; only copies out of the 32 KiB
before it are unknown. So it is inflated twice, with two windows that differ in every byte: equal bytes in both results
did not come from the window. Different ones together identify the byte of the window, and equal places of the window
have equal bytes, so a byte that is known otherwise makes all its copies known (:meth:`Inflated.learn`).
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

LARGEST_STORED_BLOCK = 5 + 65_535  # bytes with its header (3.2.4)

_WINDOW = 32 * 1024  # bytes that a copy may reach back
_SLICE = 16 * 1024  # bytes whose bit positions are judged at once: few enough that the numbers stay in the cache
_LONGEST_HEADER = 10  # bytes of a block's type, its counts and its code lengths: 3 + 14 + 19 * 3 bits
_FIRST_PIECE = 256  # compressed bytes inflated at first: more than nearly every wrong start survives
_PIECE = 16 * 1024  # compressed bytes inflated at once from then on
_PIECE_OUTPUT = 256 * 1024  # bytes that come out at once: the most that a wrong start costs uncounted


class _Window(NamedTuple):
    """Substitute for the unknown 32 KiB before a start, and a literal of 9 bits of the fixed codes (3.2.6): the byte,
    and its code, the first bit the lowest.
    """

    content: bytes
    literal: int
    literal_code: int


# Byte i of one window is i >> 7, and 1 to 128 more in the other, modulo 256: they differ everywhere, and both together
# show i. The literals are another distance apart. 0xFF has the fixed code 111111111, and 0x90 has 110010000.
_ONE = _Window(bytes(place >> 7 for place in range(_WINDOW)), 0xFF, 0b111111111)
_OTHER = _Window(bytes((place >> 7) + (place & 127) + 1 & 255 for place in range(_WINDOW)), 0x90, 0b000010011)


@dataclass(frozen=True)
class Inflated:
    """``data`` inflated from bit ``start`` of ``compressed``; the methods return its certain bytes, by index."""

    data: bytes = field(repr=False)
    compressed: bytes = field(repr=False)
    start: int
    _learned: dict[int, int] = field(default_factory=dict, repr=False)  # place in the window -> byte

    whole: bool = False

    @classmethod
    def of_known(cls, data: bytes) -> Inflated:
        """``data`` that is certain from end to end, such as a stored member."""
        return cls(data, b"", 0, whole=True)

    @cached_property
    def other_data(self) -> bytes:
        """``data`` after the other window; computed on demand, since it may begin after all wanted bytes."""
        if self.whole:
            return self.data
        return run_from(self.compressed, self.start, _OTHER, len(self.data)).data[: len(self.data)]

    @cached_property
    def unknown(self) -> bytes:
        """One byte for each of ``data``: 0 if it is certain, else not 0; learnt bytes are ignored."""
        other = int.from_bytes(self.other_data, "little")
        return (int.from_bytes(self.data, "little") ^ other).to_bytes(len(self.data), "little")

    def known(self, start: int, end: int) -> bytes | None:
        """The bytes from ``start`` to ``end``; None unless each is inside of ``data`` and certain or learnt."""
        if not 0 <= start <= end <= len(self.data):
            return None
        one, other = self.data[start:end], self.other_data[start:end]
        if one == other:
            return one
        known = self.partly_known(start, end)
        return None if None in known else bytes(byte or 0 for byte in known)

    def partly_known(self, start: int, end: int) -> list[int | None]:
        """The bytes from ``start`` to ``end``, which are inside of ``data``; None for uncertain ones."""
        pairs = zip(self.data[start:end], self.other_data[start:end], strict=True)
        return [one if one == other else self._learned.get(_place(one, other)) for one, other in pairs]

    def learn(self, start: int, content: bytes) -> bool:
        """Record that ``content`` is at ``start``, and at every other copy of the same bytes of the window.

        False, and nothing is recorded, when it contradicts known bytes.
        """
        learnt: dict[int, int] = {}
        piece = slice(start, start + len(content))
        for byte, other_byte, true in zip(self.data[piece], self.other_data[piece], content, strict=True):
            if byte == other_byte:
                if byte != true:
                    return False
            else:
                place = _place(byte, other_byte)
                if learnt.setdefault(place, self._learned.get(place, true)) != true:
                    return False
        self._learned.update(learnt)
        return True


def _place(one: int, other: int) -> int:
    """The place in the window that both bytes were copied from; the literal before the start is after all others."""
    distance = other - one - 1 & 255
    return one << 7 | distance if distance < 128 else _WINDOW


class Run(NamedTuple):
    """The result of a start: the ``data``, how many compressed bytes were ``used``, whether the stream ``ended``, and
    whether it is ``sound`` as far as it was followed: to its end, the end of the bytes, or the limit.
    """

    data: bytes
    used: int
    ended: bool
    sound: bool


def run_from(compressed: bytes, start: int, window: _Window = _ONE, limit: int = 1 << 40) -> Run:
    """Inflate from bit ``start`` after ``window``, until the bytes end or more than ``limit`` bytes came out.

    The bits cannot be shifted to a byte boundary, since stored blocks are aligned in the original stream. Instead
    blocks that end just before ``start`` replace the bytes before it.
    """
    position, bit = divmod(start, 8)
    filler, filler_bits, literals = _filler(bit, window)
    joint = filler | (compressed[position] >> bit) << filler_bits
    inflater = zlib.decompressobj(-zlib.MAX_WBITS, zdict=window.content)
    taken = min(len(compressed), position + 1 + _FIRST_PIECE)
    pending = joint.to_bytes(filler_bits // 8 + 1, "little") + compressed[position + 1 : taken]
    pieces: list[bytes] = []
    room = limit + literals
    sound = True
    try:
        while True:
            pieces.append(inflater.decompress(pending, min(_PIECE_OUTPUT, room + 1)))
            room -= len(pieces[-1])
            if inflater.eof or room < 0:
                break
            pending = inflater.unconsumed_tail
            if not pending and len(pieces[-1]) < _PIECE_OUTPUT:  # nothing is held back
                pending = compressed[taken : taken + _PIECE]
                taken += len(pending)
                if not pending:
                    break
    except zlib.error:
        sound = False
    data = b"".join(pieces)[literals:]
    held = len(inflater.unconsumed_tail) + len(inflater.unused_data)
    return Run(data, taken - held, inflater.eof and room >= 0, sound)


def _filler(bit: int, window: _Window) -> tuple[int, int, int]:
    """Blocks with fixed codes, not the final one, that end ``bit`` bits after the beginning of a byte.

    As a number whose first bit is the lowest, with how many bits it has, and how many literals it inflates to: one,
    which extends the window, when ``bit`` is odd.
    """
    filler, bits = 0, 0
    if bit % 2:
        filler, bits = 0b010 | window.literal_code << 3, 19  # not final, BTYPE 1; seven zeros end the block
    while bits % 8 != bit:
        filler |= 0b010 << bits
        bits += 10
    return filler, bits, bit % 2


def header_candidates(compressed: bytes, end: int) -> Iterator[int]:
    """The bit positions before byte ``end``, in order, at which a dynamic block could begin; see :func:`_headers`."""
    for first in range(0, end, _SLICE):
        length = min(_SLICE, end - first)
        stream = int.from_bytes(compressed[first : first + length + _LONGEST_HEADER], "little")
        found = _headers(stream, 8 * length).to_bytes(length, "little")
        for byte in re.finditer(rb"[^\0]", found):
            bits = byte[0][0]
            yield from (8 * (first + byte.start()) + bit for bit in range(8) if bits >> bit & 1)


def _headers(stream: int, positions: int) -> int:
    """The positions, as bits of a number, at which a dynamic block header (3.2.7) could be in ``stream``.

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
    """Bit masks of the positions with code length 7, 6, ... 1, which add 1, 2, ... 64 to the sum."""
    both = high & middle
    only_high, only_middle = high ^ both, middle ^ both
    seven, five, three = both & low, only_high & low, only_middle & low
    return [seven, both ^ seven, five, only_high ^ five, three, only_middle ^ three, low ^ seven ^ five ^ three]


def _at_least(number: list[int], bound: int, every: int) -> int:
    """The positions at which the number with these bits, lowest first, is at least ``bound``."""
    result = every
    for place, bits in enumerate(number):
        result = bits & result if bound >> place & 1 else bits | result
    return result


def _without(positions: int, others: int) -> int:
    return positions ^ (positions & others)
