"""From the changes of a document to the edits of its bytes."""

from __future__ import annotations

from collections.abc import Iterable

from wheelproof.pins.documents.items import remove_items
from wheelproof.pins.model import Change, Document, Edit, FoundRequirement, ItemList, Span


def edits_of(
    document: Document, changes: Iterable[Change], more: list[Span], insertions: Iterable[tuple[Span, str]]
) -> tuple[Edit, ...]:
    """The edits for the changes, for further spans that go, and for texts that come, in order."""
    source = document.source
    lists: dict[int, list[FoundRequirement]] = {}
    gone = list(more)
    replaced: list[tuple[Span, str]] = list(insertions)
    for change in changes:
        if change.replacement is not None:
            replaced += [(span, change.replacement) for span in change.found.values]
        elif change.found.items is not None:
            lists.setdefault(id(change.found.items), []).append(change.found)
        else:
            gone += change.found.spans
    for members in lists.values():
        if members[0].items is not None:
            items, indexes = members[0].items, {found.index for found in members}
            spans = remove_items(document.layout, items, indexes)
            gone += spans
            replaced += _lone_comma(items, indexes, spans)
    merged = _merged(gone)
    offsets = source.byte_offsets(offset for span in (*merged, *(span for span, _ in replaced)) for offset in span)
    edits = [Edit(offsets[start], offsets[end]) for start, end in merged]
    edits += [Edit(offsets[start], offsets[end], text.encode(source.encoding)) for (start, end), text in replaced]
    return tuple(sorted(edits, key=lambda edit: (edit.start, edit.end)))


def _lone_comma(items: ItemList, gone: set[int], spans: list[Span]) -> list[tuple[Span, str]]:
    """The comma that a tuple needs when one item is left, and no comma."""
    left = [span for index, span in enumerate(items.items) if index not in gone]
    commas = [at for at in items.separators if at is not None]
    if not items.comma_alone or len(left) != 1 or any(not _covers(spans, at) for at in commas):
        return []
    end = left[0][1]
    return [((end, end), ",")]


def _covers(spans: list[Span], at: int) -> bool:
    return any(start <= at < end for start, end in spans)


def _merged(spans: Iterable[Span]) -> list[Span]:
    """The spans in order, those that touch or overlap joined."""
    merged: list[Span] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged
