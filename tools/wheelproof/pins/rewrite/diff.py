"""The unified diff of a planned file, from its edits: linear, however long the file is."""

import difflib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from wheelproof.pins.model import Edit, FilePlan, apply

CONTEXT = 3  # lines around a change


@dataclass(slots=True)
class _Hunk:
    """Lines ``first`` to ``last`` (which is not part of it) of the original, and the edits in them."""

    first: int
    last: int
    edits: list[Edit]


def unified(file: FilePlan) -> Iterator[str]:
    """The lines of the diff (as of ``diff -u``), without their ends; none when nothing changes."""
    if not file.changed:
        return
    encoding = file.document.source.encoding
    if encoding.startswith(("utf-16", "utf-32")):  # whose lines do not end with a byte
        before, after = (data.decode(encoding).splitlines() for data in (file.original, file.rewritten))
        yield from difflib.unified_diff(before, after, str(file.path), str(file.path), lineterm="")
        return
    lines = file.original.splitlines(keepends=True)
    starts = [0, *accumulate(map(len, lines))]
    yield f"--- {file.path}"
    yield f"+++ {file.path}"
    shift = 0
    for group in _groups(_hunks(file.edits, starts, len(lines))):
        first, last = max(0, group[0].first - CONTEXT), min(len(lines), group[-1].last + CONTEXT)
        body: list[tuple[str, bytes]] = []
        position = first
        for hunk in group:
            body += ((" ", line) for line in lines[position : hunk.first])
            body += (("-", line) for line in lines[hunk.first : hunk.last])
            base = starts[hunk.first]
            edits = [replace(edit, start=edit.start - base, end=edit.end - base) for edit in hunk.edits]
            text = apply(b"".join(lines[hunk.first : hunk.last]), edits)
            body += (("+", line) for line in text.splitlines(keepends=True))
            position = hunk.last
        body += ((" ", line) for line in lines[position:last])
        length = sum(sign != "-" for sign, _ in body)
        yield f"@@ -{_range(first, last - first)} +{_range(first + shift, length)} @@"
        shift += length - (last - first)
        yield from (_line(sign, line, encoding) for sign, line in body)


def _hunks(edits: Sequence[Edit], starts: list[int], count: int) -> list[_Hunk]:
    """The lines that the edits touch; a line whose end goes takes the next one with it."""
    hunks: list[_Hunk] = []
    for edit in edits:
        first = min(bisect_right(starts, edit.start) - 1, count)
        last = bisect_right(starts, edit.end) - 1
        whole = starts[first] == edit.start and starts[last] == edit.end and not edit.replacement
        last = min(last + (not whole), count)
        if hunks and first < hunks[-1].last:
            hunks[-1].last = max(last, hunks[-1].last)
            hunks[-1].edits.append(edit)
        else:
            hunks.append(_Hunk(first, last, [edit]))
    return hunks


def _groups(hunks: list[_Hunk]) -> Iterator[list[_Hunk]]:
    """Hunks whose contexts touch."""
    group: list[_Hunk] = []
    for hunk in hunks:
        if group and hunk.first - group[-1].last > 2 * CONTEXT:
            yield group
            group = []
        group.append(hunk)
    if group:
        yield group


def _range(start: int, length: int) -> str:
    return str(start + 1) if length == 1 else f"{start + (length > 0)},{length}"


def _line(sign: str, line: bytes, encoding: str) -> str:
    body = line.rstrip(b"\r\n")
    end = "" if len(body) < len(line) else "\n\\ No newline at end of file"
    return f"{sign}{body.decode(encoding, 'replace')}{end}"
