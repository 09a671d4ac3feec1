"""The end of a raw deflate stream (RFC 1951) from its last bytes alone, with certain bytes distinguished.

It is inflated from a block that begins within them (:mod:`wheel_checks.formats.zip.deflate_blocks`). A wrong start is
recognised by the data after it: the codes must be complete, every later block sound, and the last one must end in the
last byte. Chance does not satisfy that, but data might: a final stored block may contain another deflate stream, which
ends at the same place. A stored block has at most 65,535 bytes, so starts that near the end are not taken unless the
caller has its own check. A malicious stream can still deceive: reading all of it is the only proof.
"""

from __future__ import annotations

from dataclasses import dataclass

from wheel_checks.errors import FormatError
from wheel_checks.formats.zip.deflate_blocks import LARGEST_STORED_BLOCK, Inflated, header_candidates, run_from

MAX_OUTPUT = 32 * 1024 * 1024  # bytes inflated

_MAX_ATTEMPTS = 16_384  # starts tried; 1 MiB of machine code has about 6,000 that look like a header
_MAX_WASTE = 32 * 1024 * 1024  # bytes inflated from starts that then prove wrong


@dataclass(frozen=True)
class Tail:
    """The end of a member: ``inflated`` begins at byte ``offset`` of the member and reaches to its end.

    The methods return its certain bytes. ``attempts`` is the number of starts that were tried.
    """

    offset: int
    inflated: Inflated
    attempts: int

    @property
    def data(self) -> bytes:
        """The inflated bytes; some may be uncertain."""
        return self.inflated.data

    @property
    def unknown(self) -> bytes:
        """One byte for each of ``data``: 0 if it is certain, else not 0."""
        return self.inflated.unknown

    def certain(self, offset: int, length: int) -> bytes | None:
        """``length`` bytes at ``offset`` of the member; None unless each is certain, or a copy of a learnt byte."""
        return self.inflated.known(offset - self.offset, offset - self.offset + length)

    def learn(self, offset: int, content: bytes) -> bool:
        """Record that ``content``, inside of the tail, is at ``offset``; False if that contradicts certain bytes."""
        return self.inflated.learn(offset - self.offset, content)


def inflate_tail(compressed: bytes, size: int, *, limit: int = MAX_OUTPUT, margin: int = LARGEST_STORED_BLOCK) -> Tail:
    """Inflate from the earliest block header in ``compressed``, the last bytes of a deflated member of ``size`` bytes.

    Only a header over ``margin`` bytes before the end is taken; a lower margin than the default is for callers that
    verify the result by other facts of the file. Raises FormatError when no start is found (the tail is too short, has
    no dynamic block, or is damaged), when more than ``size`` or ``limit`` bytes come out, or when the search takes too
    long. Takes 0.003 to 0.02 s for 256 KiB, and as long again for the first query of certain bytes; memory for about
    four times the result.
    """
    attempts, waste = 0, 0
    for start in header_candidates(compressed, len(compressed) - margin):
        attempts += 1
        run = run_from(compressed, start, limit=limit)
        if run.ended and run.used == len(compressed):
            if len(run.data) > size:
                raise FormatError(
                    f"the tail of the member inflates to {len(run.data)} bytes", expected=f"at most {size}"
                )
            return Tail(size - len(run.data), Inflated(run.data, compressed, start), attempts)
        waste += len(run.data)
        if attempts == _MAX_ATTEMPTS or waste > _MAX_WASTE:
            break
    raise FormatError(
        f"no start of a block was found in the last {len(compressed)} bytes of the member ({attempts} tried)",
        expected=f"a valid deflate stream with a dynamic block that begins over {margin} bytes before its end",
    )
