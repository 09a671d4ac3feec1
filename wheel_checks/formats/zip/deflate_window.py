"""A window into the middle of a raw deflate stream (RFC 1951): what some of its bytes inflate to, but not where.

Inflating begins at a block within the window (:mod:`wheel_checks.formats.zip.deflate_blocks`): one with dynamic codes,
or a stored one, whose length occurs twice. A start counts when everything after it is sound up to the end of the
window, which must be farther away than the largest stored block is long: such a block may hold another deflate stream.
The place of the result in the member is unknown; callers find what they look for by its form.
"""

from collections.abc import Iterator
from heapq import merge

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.deflate_blocks import LARGEST_STORED_BLOCK, Inflated, header_candidates, run_from

_MAX_ATTEMPTS = 8192
_MAX_WASTE = 32 * 1024 * 1024  # bytes inflated from starts that then prove wrong


def inflate_window(compressed: bytes, *, limit: int, margin: int = LARGEST_STORED_BLOCK) -> Inflated:
    """Inflate ``compressed`` from the earliest block that begins over ``margin`` bytes before its end.

    The result has at most ``limit`` bytes. Raises FormatError when no start is found, or when that takes too long.
    """
    end = len(compressed) - margin
    attempts, waste = 0, 0
    for start in merge(header_candidates(compressed, end), _stored_candidates(compressed, end)):
        attempts += 1
        run = run_from(compressed, start, limit=limit)
        whole = not run.ended or run.used == len(compressed)
        if run.sound and whole and run.used - start // 8 > margin:
            return Inflated(run.data[:limit], compressed, start)
        waste += len(run.data)
        if attempts == _MAX_ATTEMPTS or waste > _MAX_WASTE:
            break
    raise FormatError(
        f"no start of a block was found in {len(compressed)} bytes of the member ({attempts} tried)",
        expected="a valid deflate stream with a dynamic or stored block",
    )


def _stored_candidates(compressed: bytes, end: int) -> Iterator[int]:
    """The bit positions before byte ``end`` where a stored block (3.2.4) could begin, in order.

    Its three bits are taken to be the last of their byte; where they really are does not matter.
    """
    number = int.from_bytes(compressed, "little")
    equal = (number ^ number >> 16).to_bytes(len(compressed), "little")
    at = equal.find(b"\xff\xff")
    while 0 <= at <= end:
        if at and not compressed[at - 1] >> 5:  # the three bits: not the last block, stored
            yield 8 * at - 3
        at = equal.find(b"\xff\xff", at + 1)
