"""Undoes edits in a content that was edited further, where what stood around them still stands there once."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from wheel_checks.errors import FormatError
from wheelproof.pins.model import Edit

CONTEXT = 400  # bytes on each side by which a place is found again, at most


def merged(path: Path, content: bytes, original: bytes, edits: Sequence[Edit]) -> bytes:
    """``content`` with every edit undone. Raises FormatError when a place is not there any more, or not only once."""
    found: list[tuple[int, int, bytes]] = []
    for index, edit in enumerate(edits):
        lower = max(edits[index - 1].end if index else 0, edit.start - CONTEXT)
        upper = min(edits[index + 1].start if index + 1 < len(edits) else len(original), edit.end + CONTEXT)
        at = _find(content, original[lower : edit.start], edit.replacement, original[edit.end : upper])
        if at is None:
            line = original.count(b"\n", 0, edit.start) + 1
            raise FormatError(
                f"{path} has changed around its former line {line}: what was removed there cannot be put back",
                hint="restore that file by hand, or from version control; nothing was written to it",
            )
        found.append((at, at + len(edit.replacement), original[edit.start : edit.end]))
    for start, end, text in sorted(found, reverse=True):
        content = content[:start] + text + content[end:]
    return content


def _find(content: bytes, before: bytes, replacement: bytes, after: bytes) -> int | None:
    """Where the edit is now: by the most context that is still there, halved until it matches or is no context."""
    size = max(len(before), len(after))
    while True:
        head, tail = before[len(before) - min(size, len(before)) :], after[:size]
        wanted = head + replacement + tail
        if wanted and content.count(wanted) == 1:
            return content.index(wanted) + len(head)
        if size <= 4:
            return None
        size //= 2
