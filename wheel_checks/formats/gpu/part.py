"""A part of a file with uncertain bytes."""

from __future__ import annotations

from typing import Protocol


class Part(Protocol):
    """``data``, with :meth:`known` for the certain bytes."""

    @property
    def data(self) -> bytes:
        """The bytes; some of them may be wrong."""

    def known(self, start: int, end: int) -> bytes | None:
        """The bytes from ``start`` to ``end``; None unless each is there and certain."""
