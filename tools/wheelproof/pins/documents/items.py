"""Takes items out of lists with separators, as a careful person does: whole lines where an item has them to itself."""

import re
from collections.abc import Collection, Iterator

from wheelproof.pins.model import ItemList, Span

_NEWLINE = re.compile(r"\r\n|\r|\n")
_LINE_END = re.compile(r"[ \t]*(?:#[^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_COMMENT = re.compile(r"[ \t]*#[^\r\n]*")


def remove_items(text: str, items: ItemList, gone: Collection[int]) -> list[Span]:
    """The spans to delete so that the items ``gone`` are gone and the list is as well-formed as before.

    An item that has its lines to itself goes with them, its trailing comment included; every other comment stays, and
    so does the style: separators first or last, a trailing one or none.
    """
    separators = _separators(text, items, set(gone))
    atoms = sorted([items.items[i] for i in gone] + [(at, at + 1) for at in separators])
    emptied = len(set(gone)) == len(items.items)
    spans: list[Span] = []
    for region, inside in _regions(text, atoms):
        if _is_alone(text, region, inside):
            spans.append(region)
        else:
            for start, end in _clusters(text, inside):
                leads = start in separators
                spans.append(_widened(text, items, (start, end), region[0], emptied=emptied, separated=leads))
    return spans


def _separators(text: str, items: ItemList, gone: set[int]) -> set[int]:
    """The offsets of the separators that go with the items."""
    chosen: set[int] = set()
    last = len(items.items) - 1
    for start, end in _runs(gone):
        before = set(range(start - 1, end))  # the separator in front of each item of the run
        behind = set(range(start, end + 1))
        if start == 0:
            chosen |= behind
        elif end < last:
            chosen |= before if _comma_first(text, items, end) else behind
        elif items.separators[last] is not None:
            chosen |= behind
        elif "\n" in text[items.items[start - 1][1] : items.items[start][0]] and items.trailing:
            chosen |= before if _comma_first(text, items, start - 1) else behind
        else:
            chosen |= before
    return {at for index in chosen if (at := items.separators[index]) is not None}


def _runs(indexes: set[int]) -> Iterator[Span]:
    """First and last of every run of consecutive indexes."""
    for index in sorted(indexes):
        if index - 1 not in indexes:
            end = index
            while end + 1 in indexes:
                end += 1
            yield index, end


def _comma_first(text: str, items: ItemList, index: int) -> bool:
    """Whether the separator after an item is on a later line than that item."""
    at = items.separators[index]
    return at is not None and "\n" in text[items.items[index][1] : at]


def _regions(text: str, atoms: list[Span]) -> Iterator[tuple[Span, list[Span]]]:
    """The lines that hold the atoms, each with the atoms on it; an atom over several lines joins them."""
    region, inside = (0, 0), list[Span]()
    for atom in atoms:
        if inside and atom[0] < region[1]:
            inside.append(atom)
            if atom[1] > region[1]:
                region = (region[0], _line_end(text, atom[1]))
            continue
        if inside:
            yield region, inside
        region, inside = (_line_start(text, atom[0]), _line_end(text, atom[1])), [atom]
    if inside:
        yield region, inside


def _line_start(text: str, offset: int) -> int:
    start = text.rfind("\n", 0, offset) + 1
    return max(start, text.rfind("\r", start, offset) + 1)


def _line_end(text: str, offset: int) -> int:
    found = _NEWLINE.search(text, offset)
    return found.end() if found else len(text)


def _is_alone(text: str, region: Span, atoms: list[Span]) -> bool:
    """Whether the lines hold nothing but the atoms, white space, and a comment at the end."""
    position = region[0]
    for start, end in atoms:
        if text[position:start].strip(" \t"):
            return False
        position = end
    match = _LINE_END.match(text, position)
    return match is not None and match.end() == region[1]


def _clusters(text: str, atoms: list[Span]) -> Iterator[Span]:
    """Atoms with only white space between them, joined."""
    start, end = atoms[0]
    for atom in atoms[1:]:
        if text[end : atom[0]].strip(" \t"):
            yield start, end
            start = atom[0]
        end = atom[1]
    yield start, end


def _widened(text: str, items: ItemList, span: Span, first: int, *, emptied: bool, separated: bool) -> Span:
    """The span with the white space that would be left over. Its lines begin at ``first``; ``separated`` says that it
    starts with a separator.
    """
    start, end = span
    before = start
    while before > max(items.opening, first) and text[before - 1] in " \t":
        before -= 1
    after, last = end, max(items.closing, end)
    while after < last and text[after] in " \t":
        after += 1
    at_line_end = text[after : after + 1] in ("\r", "\n", "#", "")
    leads_line = before == first or text[before - 1] in "\r\n"
    if leads_line:
        before = start  # indentation stays, and what it may stand for (PEP 723's "# ")
    elif at_line_end and before == items.opening and (comment := _COMMENT.match(text, end)):
        return before, comment.end()  # alone after the bracket: the comment is its own
    if emptied:
        return before, end if at_line_end else after
    if at_line_end or after == items.closing or (separated and not leads_line):
        return before, end
    return start, after
