"""A part of a file of which not every byte is certain."""

from typing import Protocol


class Part(Protocol):
    """``data``, of which :meth:`known` gives what is certain."""

    @property
    def data(self) -> bytes:
        """The bytes; some of them may be wrong."""

    def known(self, start: int, end: int) -> bytes | None:
        """The bytes from ``start`` to ``end``; None unless each is there and certain."""
