"""YAML as pixi writes it: mappings, sequences and texts, each mapping with its line. No aliases, tags or types."""

from collections.abc import Iterator
from typing import Any

import yaml

from wheel_checks.errors import FormatError

MAX_SIZE = 32 << 20
DEEPEST = 40
LINE = "\0line"
"""The key under which a mapping holds its line, which no text of YAML can be."""

_Loader: Any = getattr(yaml, "CLoader", yaml.Loader)
_SLOW = 1 << 20  # bytes that PyYAML takes without libyaml: 20 s


def read_yaml(data: bytes, source: str) -> Any:
    """The document as dicts, lists and strings; null is "". Raises FormatError."""
    largest = MAX_SIZE if hasattr(yaml, "CLoader") else _SLOW
    if len(data) > largest:
        raise FormatError(f"{source} has {len(data):,} bytes", expected=f"at most {largest:,}")
    try:
        text = data.decode("utf-8-sig")
        return _document(yaml.parse(text, Loader=_Loader), source)
    except yaml.MarkedYAMLError as error:
        line = f" (line {error.problem_mark.line + 1})" if error.problem_mark else ""
        raise FormatError(f"{source} is not valid YAML: {error.problem}{line}") from None
    except (yaml.YAMLError, ValueError, OverflowError, RecursionError) as error:
        raise FormatError(f"{source} is not valid YAML: {' '.join(str(error).split())[:200]}") from None


class _Made:
    """The values that events make, one after the other."""

    def __init__(self, source: str) -> None:
        self.source = source
        self.stack: list[dict[str, Any] | list[Any]] = []
        self.keys: list[str | None] = []
        self.top: Any = ""

    def put(self, value: Any) -> None:
        """Add a value to the innermost collection."""
        if not self.stack:
            self.top = value
        elif isinstance(owner := self.stack[-1], list):
            owner.append(value)
        elif (key := self.keys[-1]) is not None:
            owner[key] = value
            self.keys[-1] = None
        elif isinstance(value, str):
            self.keys[-1] = value
        else:
            raise FormatError(f"{self.source} has a key that is no text", expected="a document as written by pixi")

    def begin(self, value: Any) -> None:
        """Begin a collection."""
        if len(self.stack) >= DEEPEST:
            raise FormatError(f"{self.source} is nested more than {DEEPEST} levels deep")
        self.put(value)
        self.stack.append(value)
        self.keys.append(None)

    def end(self) -> None:
        """End the innermost collection."""
        self.stack.pop()
        self.keys.pop()


def _document(events: Iterator[Any], source: str) -> Any:
    made = _Made(source)
    for event in events:
        if isinstance(event, yaml.ScalarEvent):
            is_null = event.style is None and event.value in ("", "~", "null") and event.implicit[0]
            made.put("" if is_null else event.value)
        elif isinstance(event, yaml.MappingStartEvent):
            made.begin({LINE: _line(event)})
        elif isinstance(event, yaml.SequenceStartEvent):
            made.begin([])
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            made.end()
        elif isinstance(event, yaml.AliasEvent):
            raise FormatError(f"{source} has an alias (line {_line(event)})", expected="none, as pixi writes")
        elif isinstance(event, yaml.DocumentEndEvent):
            break
    return made.top


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1
