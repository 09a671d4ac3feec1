"""Samples the GPU code of large libraries: windows into the middle of a deflated member, a few hundred kilobytes each.

What is seen is there; what is not seen may be there anyway. The windows are at places that follow from the sizes
in the archive and the section headers alone, spread evenly over where the GPU code must be, so that a sample of a file
is always the same. A larger sample holds the smaller one.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.formats.gpu.bundle_sample import sample_bundles
from wheel_checks.formats.gpu.fatbin import GpuCode
from wheel_checks.formats.gpu.fatbin_sample import sample_fatbins
from wheel_checks.formats.zip.deflate_blocks import Inflated
from wheel_checks.formats.zip.deflate_window import inflate_window
from wheel_checks.formats.zip.directory import Member
from wheel_checks.formats.zip.member_data import STORED
from wheel_checks.sources.byte_source import ByteSource

WINDOW = 256 * 1024
"""Compressed bytes of one window. A block of deflate has some 64 KiB, and the first one in a window is lost."""
SIZES = (3, 7, 15, 31)
"""How many windows the samples have, from the smallest on: 0.8, 1.8, 3.9 and 8.1 MB of each library."""

_OUTPUT = 16 * 1024 * 1024  # bytes inflated of one window
_DENSITY = 0.35  # to what share of its size everything but GPU code deflates at least; it need not be right
_NOTHING = GpuCode({}, "sampled", {})


@dataclass(frozen=True, slots=True)
class Sampled:
    """A member whose data begins at ``data_offset`` of the archive, and the ``(offset, size)`` in it, inflated,
    of what holds GPU code; none when that may be anywhere. ``strictly``, only windows count that certainly are in the
    largest of them: what is next to it may look the same.
    """

    member: Member
    data_offset: int
    spans: tuple[tuple[int, int], ...]
    strictly: bool = False


def window_places(library: Sampled, windows: int) -> list[tuple[int, int]]:
    """The ``(offset, length)`` in the archive of so many windows, less when they would cover all there is; none where
    no place is certain, and only such count.
    """
    packed = library.member.compressed_size
    low, room = _certain_room(library) if library.strictly else _likely_room(library)
    if library.strictly and room < WINDOW:
        return []
    length = min(WINDOW, packed)
    spread = max(0, min(room, packed - low) - length)
    return [
        (library.data_offset + low + int(place * spread), min(length, packed - low)) for place in _fractions(windows)
    ]


def _likely_room(library: Sampled) -> tuple[int, int]:
    """Where in the compressed bytes the GPU code must be, about: its beginning and length."""
    member = library.member
    packed = member.compressed_size
    first = min((offset for offset, _ in library.spans), default=0)
    size = sum(length for _, length in library.spans) or member.size
    if member.method == STORED:
        return min(first, packed), min(size, packed)
    other = member.size - size
    room = int(min(max(packed - _DENSITY * other, 0.15 * size), size, packed))
    return int(min((packed - room) / max(1, other) * first, packed - room)), room


def _certain_room(library: Sampled) -> tuple[int, int]:
    """Which compressed bytes certainly inflate to the inside of the largest span: their beginning and length.

    No compressor writes more bytes than it reads, but for the headers of stored blocks (RFC 1951, 3.2.4). So the first
    n compressed bytes inflate to n at least, and so do the last n: between these bounds is what the n-th inflates to.
    """
    member = library.member
    offset, length = max(library.spans, key=lambda span: span[1], default=(0, 0))
    if member.method == STORED:
        return offset, length
    low = _packed_at_most(offset)
    return low, member.compressed_size - _packed_at_most(member.size - offset - length) - low


def _packed_at_most(size: int) -> int:
    """To how many bytes so many may be compressed: a block of 5 KB and more has a header of 5 bytes."""
    return size + size // 500 + 4096


def sample(source: ByteSource, libraries: Sequence[tuple[Sampled, int]], windows: int) -> list[tuple[GpuCode, int]]:
    """What ``windows`` windows show of each library but for the first so many, and how many bytes they took.

    Raises SourceError when bytes cannot be had. Holds the windows of 4 libraries at a time, 32 MB.
    """
    results = []
    for first in range(0, len(libraries), 4):
        batch = libraries[first : first + 4]
        places = [window_places(library, windows)[done:] for library, done in batch]
        pieces = iter(source.read_many([place for of_one in places for place in of_one]))
        for (library, _), of_one in zip(batch, places, strict=True):
            code = _NOTHING
            for _ in of_one:
                code += _look(library.member, next(pieces))
            results.append((code, sum(length for _, length in of_one)))
    return results


def _look(member: Member, piece: bytes) -> GpuCode:
    """What one window shows; nothing when no block begins in it."""
    try:
        part = Inflated.of_known(piece) if member.method == STORED else inflate_window(piece, limit=_OUTPUT)
    except FormatError:
        return _NOTHING
    return sample_fatbins(part) + sample_bundles(part)


def _fractions(count: int) -> Iterator[float]:
    """1/2, 1/4, 3/4, 1/8, 5/8, ...: the sequence of van der Corput, each number between all before."""
    for number in range(1, count + 1):
        value, step, rest = 0.0, 0.5, number
        while rest:
            value += step * (rest & 1)
            rest >>= 1
            step /= 2
        yield value
