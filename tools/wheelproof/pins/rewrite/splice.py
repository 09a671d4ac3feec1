"""Makes edits in bytes."""

from __future__ import annotations

from collections.abc import Iterable

from wheelproof.pins.model import Edit


def apply(data: bytes, edits: Iterable[Edit]) -> bytes:
    """The bytes with the edits made, which are in order. Raises ValueError when two overlap."""
    parts: list[bytes] = []
    position = 0
    for edit in edits:
        if not position <= edit.start <= edit.end <= len(data):
            raise ValueError(f"the edit of bytes {edit.start} to {edit.end} overlaps another one, or lies outside")
        parts += (data[position : edit.start], edit.replacement)
        position = edit.end
    return b"".join([*parts, data[position:]])
