"""Ragged segments of one array: the columns of a sparse matrix, its rows, the blocks of variables.

Segments are worked on by classes of their lengths, each in one launch, so that a long one does not make the tiles of
all others as wide. A tile is three-dimensional, [steps, segments, lanes]: element ``step * lanes + lane`` of each
segment. Neighbouring threads have the lanes, then segments; the steps stay in the registers of a thread: so a few
threads share a segment, and sums over it need few exchanges between threads.

Triton hands dimensions to threads in the order in which offsets are contiguous, and settles a tie in one way before 3.7
and in another since. So the kernels state an order without a tie, with ``tl.max_contiguous(..., [1, 2, LANES])``.
What that says of segments, and of lanes where offsets come from a table, is not so; it does no harm, because loads are
widened only along offsets that are known to be aligned, and none are.
"""

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernels_smoke.launch import interpreted, require

INTEGERS = (torch.int32, torch.int64)
COMMON = 32  # segments up to this length may share a class
MOST = 2**30  # elements of a segment: lengths are 32-bit, and a class is bounded by a power of two


@dataclass(frozen=True)
class LengthClass:
    """Segments of at most ``length`` elements, a power of two: ``count`` of them, from ``first`` on in the order."""

    length: int
    first: int
    count: int


@dataclass(frozen=True)
class Segments:
    """Segment i is the elements from ``offsets[i]`` to ``offsets[i + 1] - 1`` of an array of ``elements``.

    ``offsets``: [count + 1], int32 or int64. ``order``: [count], int32, the segments' numbers, those of a class
    together. ``classes`` begin with the shortest.
    """

    offsets: torch.Tensor
    order: torch.Tensor
    classes: tuple[LengthClass, ...]
    elements: int

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.order)

    @property
    def longest(self) -> int:
        """No segment is longer than this."""
        return self.classes[-1].length if self.classes else 0


def segments(offsets: torch.Tensor) -> Segments:
    """The segments between ``offsets`` [count + 1], which begin with 0 and never fall.

    Waits for the GPU: this is done once for a matrix, before the work begins. Segments up to twice the mean length, and
    up to 32, share a class, and keep the order in which they are in memory. Raises ValueError when ``offsets`` are no
    such, or a segment has more than 2^30 elements.
    """
    require(offsets.ndim == 1 and len(offsets) > 0, "offsets must be a vector of at least one element")
    require(offsets.dtype in INTEGERS, f"offsets must be torch.int32 or torch.int64, not {offsets.dtype}")
    lengths = offsets.diff()
    count = len(lengths)
    elements, least, longest = int(offsets[-1]), int(lengths.min()) if count else 0, int(lengths.max()) if count else 0
    require(int(offsets[0]) == 0 and least >= 0, "offsets must begin with 0 and never fall")
    require(longest <= MOST, f"a segment has {longest} elements; {MOST} are possible")
    bounds = [triton.next_power_of_2(min(COMMON, max(1, 2 * elements // max(count, 1))))]
    while bounds[-1] < longest:
        bounds.append(2 * bounds[-1])
    classes = torch.bucketize(lengths, torch.tensor(bounds, dtype=lengths.dtype, device=lengths.device))
    order = torch.argsort(classes, stable=True).to(torch.int32)
    made, first = [], 0
    for length, members in zip(bounds, torch.bincount(classes, minlength=len(bounds)).tolist(), strict=True):
        if members:
            made.append(LengthClass(length, first, members))
            first += members
    return Segments(offsets, order, tuple(made), elements)


def check_segments(name: str, segments: Segments, like: torch.Tensor) -> None:
    """Raise ValueError unless the tensors of ``segments`` fit each other and are where ``like`` is."""
    for field, tensor in (("offsets", segments.offsets), ("order", segments.order)):
        require(tensor.is_contiguous(), f"{field} of {name} must be contiguous")
        require(tensor.device == like.device, f"{field} of {name} are on {tensor.device}, not on {like.device}")
    require(segments.offsets.shape == (segments.count + 1,), f"offsets of {name} must be one more than its segments")


@dataclass(frozen=True)
class Configuration:
    """How the launch of a class is laid out: a tile has ``segments`` of ``length`` elements, ``lanes`` for each.

    All are powers of two. ``eviction`` is the cache's hint for what is read once.
    """

    length: int
    lanes: int
    segments: int
    warps: int
    eviction: str = ""


def layout(length: int, *, most: int, steps: int, together: int, eviction: str = "") -> Configuration:
    """The layout for a class of ``length``: ``steps`` elements a lane, tiles of ``most`` elements of a segment at most.

    ``together``: segments for each group of lanes, where they are short. No more than 512 lanes: 16 warps are what
    AMD's GPUs have at most.
    """
    length = min(length, most)
    if interpreted():
        return Configuration(length, min(length, 4), 16, 4)
    lanes = min(max(length // steps, 1), 512)
    warps = max(lanes // 32, 4)
    return Configuration(length, lanes, max(32 * warps // lanes * (together if lanes < 32 else 1), 1), warps, eviction)


@triton.jit
def _tile(offsets, order, first, count, SEGMENTS: tl.constexpr):
    """Of the tile of this program: the segments' numbers, which of them there are, where each begins, its length.

    ``order`` is None where a single class has all segments: they are in their order.
    """
    place = tl.program_id(0) * SEGMENTS + tl.arange(0, SEGMENTS)
    exists = place < count
    segment = place
    if order is not None:
        segment = tl.load(order + first + place, mask=exists, other=0)  # [SEGMENTS]
    begin = tl.load(offsets + segment, mask=exists, other=0).to(tl.int64)  # [SEGMENTS]
    end = tl.load(offsets + segment + 1, mask=exists, other=0).to(tl.int64)  # [SEGMENTS]
    return segment, exists, begin, (end - begin).to(tl.int32)


@triton.jit
def _elements(LENGTH: tl.constexpr, LANES: tl.constexpr):
    """The place in its segment of each element of a tile, [LENGTH / LANES, 1, LANES]."""
    return tl.arange(0, LENGTH // LANES)[:, None, None] * LANES + tl.arange(0, LANES)[None, None, :]


@triton.jit
def _sum(values):
    """The sum over each segment of a tile [steps, segments, lanes]: first what one thread has."""
    return tl.sum(tl.sum(values, axis=0), axis=1)
