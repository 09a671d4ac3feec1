"""Where the items of sequences are in a YAML document: PyYAML's events, which build no objects and expand nothing."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import yaml

from wheel_checks.errors import FormatError
from wheelproof.pins.model import ItemList, Span

DEEPEST = 50  # collections within one another
LONGEST = 1 << 18  # characters; PyYAML takes up to 5 s for as many, 0.4 s for most documents of that length
MOST = 50_000  # items that aliases repeat

_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")  # the anchor and the tag before a scalar
_ALONE = re.compile(r"[ \t]*-[ \t]+")
_LINE_END = re.compile(r"[^\r\n]*(?:\r\n|\r|\n|\Z)")
_TEMPLATE = re.compile(r"\{([%#])(?:(?!\1\}|\{\1)[\s\S])*\1\}")
_NOT_LINE_END = re.compile(r"[^\r\n]")
_SEPARATOR = re.compile(r"[ \t\r\n]*(?:(?<=\s)#[^\r\n]*[\r\n][ \t\r\n]*)*,")


@dataclass(frozen=True, slots=True)
class Item:
    """A scalar in a sequence: the keys that lead to it, its text, its span, and that of its text where it is as is.

    In a block sequence it goes with its ``line`` or lines, where it has them to itself; in a flow sequence it is one of
    ``items``. ``anchor`` is the name by which aliases repeat it.
    """

    keys: tuple[str, ...]
    text: str
    span: Span
    inner: Span | None = None
    line: Span | None = None
    items: ItemList | None = None
    index: int = 0
    anchor: str = ""


def scan(text: str) -> list[Item]:
    """The scalars of all sequences, in order; those of a sequence that aliases repeat are at each place.

    An item that aliases repeat has neither ``line`` nor ``items``: it cannot go without them. Raises FormatError when
    it is not valid YAML, too long, nested too deeply, or repeats too much.
    """
    if len(text) > LONGEST:
        raise FormatError(f"the YAML has {len(text):,} characters", expected=f"at most {LONGEST:,}")
    try:
        return _items(text, text)
    except FormatError:
        without = without_templates(text)
        if without == text:
            raise
        return _items(text, without)  # what is YAML as it stands is read as it stands: nothing in it is hidden


def without_templates(text: str) -> str:
    """The text with spaces for Jinja's statements and comments; all else keeps its place."""
    return _TEMPLATE.sub(lambda found: _NOT_LINE_END.sub(" ", found[0]), text)


def _items(text: str, as_yaml: str) -> list[Item]:
    try:
        return _Scanner(text, as_yaml).items()
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise FormatError(f"it is not valid YAML: {error.problem}{line}") from None
    except (yaml.YAMLError, ValueError, OverflowError) as error:  # the last two for "\UFFFFFFFF"
        raise FormatError(f"it is not valid YAML: {' '.join(str(error).split())[:200]}") from None


class _Scanner:
    def __init__(self, text: str, as_yaml: str) -> None:
        self.text = text
        self.events: Iterator[yaml.Event] = iter(yaml.parse(as_yaml, Loader=yaml.SafeLoader))
        self.end = 0  # of the node read last
        self.anchors: dict[str, tuple[tuple[str, ...], str, list[Item]]] = {}  # where, the text, the items within
        self.repeated: set[str] = set()
        self.copies = 0

    def items(self) -> list[Item]:
        """The items of all documents."""
        found = [item for event in self.events for item in self.node(event, (), 0)]
        return [replace(i, line=None, items=None) if i.anchor in self.repeated else i for i in found]

    def node(self, event: yaml.Event, keys: tuple[str, ...], depth: int) -> list[Item]:
        """The items within a node, whose event is given; what is not a node has none."""
        found: list[Item] = []
        if depth > DEEPEST:
            raise FormatError("the YAML is nested too deeply", expected=f"at most {DEEPEST} levels")
        if isinstance(event, yaml.SequenceStartEvent):
            found = self.sequence(event, keys, depth)
        elif isinstance(event, yaml.MappingStartEvent):
            while not isinstance(key := next(self.events), yaml.MappingEndEvent):
                self.node(key, (), depth + 1)
                name = key.value if isinstance(key, yaml.ScalarEvent) else ""
                inner = keys if name == "<<" else (*keys, name)
                found += self.node(next(self.events), inner, depth + 1)
            self.end = _span(key)[1]
        elif isinstance(event, yaml.NodeEvent):
            self.end = _span(event)[1]
        if isinstance(event, yaml.AliasEvent):
            where, _, items = self.anchor(event)
            self.copies += len(items)
            if self.copies > MOST:
                raise FormatError("aliases repeat too many items of the YAML", expected=f"at most {MOST:,}")
            found = [replace(item, keys=(*keys, *item.keys[len(where) :])) for item in items]
        elif isinstance(event, yaml.NodeEvent) and event.anchor:
            self.anchors[event.anchor] = (keys, event.value if isinstance(event, yaml.ScalarEvent) else "", found)
        return found

    def anchor(self, event: yaml.AliasEvent) -> tuple[tuple[str, ...], str, list[Item]]:
        """What an alias repeats."""
        if event.anchor not in self.anchors:
            raise FormatError(f"the YAML has no anchor {event.anchor}")
        self.repeated.add(event.anchor)
        return self.anchors[event.anchor]

    def sequence(self, start: yaml.SequenceStartEvent, keys: tuple[str, ...], depth: int) -> list[Item]:
        """The items of a sequence and of those within."""
        found: list[Item] = []
        spans: list[Span] = []
        separators: list[int | None] = []
        own: list[int] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            within = self.node(event, keys, depth + 1)
            span = _span(event)[0], self.end
            if isinstance(event, yaml.ScalarEvent) or (isinstance(event, yaml.AliasEvent) and not within):
                own.append(len(found))
                within = [self.item(event, keys, span, len(spans), flow=bool(start.flow_style))]
            found += within
            spans.append(span)
            match = _SEPARATOR.match(self.text, self.end)
            separators.append(match.end() - 1 if match else None)
        self.end = _span(event)[1]
        if start.flow_style:
            layout = ItemList(self.content(_span(start)[0]) + 1, self.end - 1, tuple(spans), tuple(separators))
            for index in own:
                found[index] = replace(found[index], items=layout)
        return found

    def content(self, begin: int) -> int:
        """Where a node begins after its anchor and tag."""
        return _end(_PROPERTIES, self.text, begin)

    def item(
        self, event: yaml.ScalarEvent | yaml.AliasEvent, keys: tuple[str, ...], span: Span, index: int, *, flow: bool
    ) -> Item:
        """A scalar of a sequence, or the alias of one."""
        begin, end = span
        inner = None
        if isinstance(event, yaml.AliasEvent):
            value = self.anchor(event)[1]
        else:
            value = event.value
            quotes = int(event.style in ("'", '"'))
            at = self.content(begin) + quotes
            inner = (at, end - quotes) if self.text[at : end - quotes] == value else None
        line = None
        first = max(self.text.rfind("\n", 0, begin), self.text.rfind("\r", 0, begin)) + 1
        if not flow and _ALONE.fullmatch(self.text, first, begin):
            last = begin + len(self.text[begin:end].rstrip())
            line = first, _end(_LINE_END, self.text, last)
        anchor = event.anchor or "" if isinstance(event, yaml.ScalarEvent) else ""
        return Item(keys, value, (begin, end), inner, line, index=index, anchor=anchor)


def _span(event: yaml.Event) -> Span:
    start, end = event.start_mark, event.end_mark
    return (start.index, end.index) if start and end else (0, 0)  # every event of a text has both


def _end(pattern: re.Pattern[str], text: str, begin: int) -> int:
    match = pattern.match(text, begin)
    return match.end() if match else begin
