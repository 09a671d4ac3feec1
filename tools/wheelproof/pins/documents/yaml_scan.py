"""Where the items of a conda environment file stand: the part of YAML 1.2 in which such files are written.

Block and flow sequences and mappings, plain and quoted scalars of one line, comments. What else YAML has (anchors,
block scalars, several documents) is passed over, and nothing in it is found.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from wheelproof.pins.model import ItemList, Span

DEEPEST = 50  # collections within one another

_BLOCK_ITEM = re.compile(r"([ \t]*)((?:-[ \t]+)+|-(?=[ \t]*(?:#|$)))")
_KEY = re.compile(r"""(?:"([^"\r\n]*)"|'([^'\r\n]*)'|([^\s#&*!|>'"%@`{}\[\],:-][^\s:#]*))[ \t]*:(?=[ \t]|$)""")
_GAP = re.compile(r"(?:[ \t\r\n]++|(?<![^ \t\r\n])#[^\r\n]*+)*+")
_QUOTED = re.compile(r'"(?:[^"\\\r\n]|\\.)*+"|\'(?:[^\'\r\n]|\'\')*+\'')
_PLAIN = re.compile(r"(?:[^,\[\]{}#\r\n:]|:(?![ \t\r\n,\]}])|(?<=\S)#)+")
_PLAIN_LINE = re.compile(r"(?:[^#\r\n]|(?<=\S)#)+")


@dataclass(slots=True)
class Item:
    """A scalar in a sequence: the keys that lead to it, its text, its span (quotes included), that of its inside.

    In a block sequence it goes with its ``line``; in a flow sequence it is one of ``items``.
    """

    keys: tuple[str, ...]
    text: str
    span: Span
    inner: Span
    line: Span | None = None
    items: ItemList | None = None
    index: int = 0


@dataclass(slots=True)
class _Level:
    indent: int
    keys: tuple[str, ...] = field(default_factory=tuple)


def scan(text: str) -> Iterator[Item]:
    """The scalars of all sequences of a document, in order."""
    levels: list[_Level] = []
    offset = 0
    resume = 0
    for line in text.splitlines(keepends=True):
        start, offset = offset, offset + len(line)
        body = line.rstrip("\r\n")
        if start < resume or not body.strip() or body.lstrip().startswith("#"):
            continue
        at = start + len(body) - len(body.lstrip())
        dashes = 0
        if match := _BLOCK_ITEM.match(body):
            dashes = len(match[2])
            at = start + match.end()
        column = at - start
        # An item of a sequence may stand at the column of the key that it belongs to.
        own = column - dashes
        while levels and (levels[-1].indent > own or (levels[-1].indent == own and not dashes)):
            levels.pop()
        keys = levels[-1].keys if levels else ()
        while len(keys) < DEEPEST and (key := _KEY.match(text, at, start + len(body))):
            keys = (*keys, next(part for part in key.groups() if part is not None))
            levels.append(_Level(column, keys))
            at = key.end()
            while at < start + len(body) and text[at] in " \t":
                at += 1
        if at < start + len(body) and text[at] in "[{":
            flow = _Flow(text, at)
            yield from flow.collection(keys, 0)
            resume = flow.at
        elif dashes and at < start + len(body) and (item := _scalar(text, at, _PLAIN_LINE, keys)):
            item.line = (start, offset)
            yield item


def _scalar(text: str, at: int, plain: re.Pattern[str], keys: tuple[str, ...]) -> Item | None:
    if match := _QUOTED.match(text, at):
        return Item(keys, match[0][1:-1], match.span(), (match.start() + 1, match.end() - 1))
    match = plain.match(text, at)
    if match is None:
        return None
    content = match[0].rstrip()
    return Item(keys, content, (at, at + len(content)), (at, at + len(content)))


class _Flow:
    """Reads one flow collection; leaves ``at`` behind it, or at the end when it is not closed."""

    def __init__(self, text: str, at: int) -> None:
        self.text = text
        self.at = at

    def collection(self, keys: tuple[str, ...], depth: int) -> list[Item]:
        """The scalars in the collection at ``at``, in its sequences and those within."""
        found: list[Item] = []
        own: list[Item] = []
        mapping = self.text[self.at] == "{"
        closing = "}" if mapping else "]"
        opening = self.at + 1
        spans: list[Span] = []
        separators: list[int | None] = []
        self.at += 1
        self.gap()
        while self.at < len(self.text) and self.text[self.at] != closing:
            start = self.at
            inner = keys
            while len(inner) < DEEPEST and (key := _KEY.match(self.text, self.at)):
                inner = (*inner, next(part for part in key.groups() if part is not None))
                self.at = key.end()
                self.gap()
            if self.text[self.at : self.at + 1] in ("[", "{") and depth < DEEPEST:
                found += self.collection(inner, depth + 1)
            elif item := _scalar(self.text, self.at, _PLAIN, inner):
                self.at = item.span[1]
                item.index = len(spans)
                if not mapping:
                    own.append(item)
            spans.append((start, self.at))
            end = self.at
            self.gap()
            separated = self.text.startswith(",", self.at)
            separators.append(self.at if separated else None)
            self.at += separated
            self.gap()
            if self.at == start or (self.at == end and not separated and self.text[self.at : self.at + 1] != closing):
                self.at = len(self.text)  # no YAML that we read: find nothing more
                return []
        layout = ItemList(opening, self.at, tuple(spans), tuple(separators))
        self.at += 1
        for item in own:
            item.items = layout
        return found + own

    def gap(self) -> None:
        match = _GAP.match(self.text, self.at)
        self.at = match.end() if match else self.at
