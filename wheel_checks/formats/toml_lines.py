"""The lines of the strings in a TOML document: tomllib gives values without their places.

The text must have passed tomllib: this reads what is valid, and checks nothing again.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"#[^\r\n]*+"
    r'|(?P<text>"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""(?:"{1,2})?'
    r"|'''(?:[^']++|'(?!''))*+'''(?:'{1,2})?"
    r'|"(?:[^"\\\r\n]++|\\.)*+"'
    r"|'[^'\r\n]*+')"
    r"|(?P<bracket>[\[\]{}])"
    r"|(?P<end>\r?\n)"
    r"|(?P<equals>=)"
    r"|[^\s\"'#\[\]{}=]++"
)


@dataclass(frozen=True, slots=True)
class TextLine:
    """A string within the value of the key ``path`` ("project.dependencies"), and the line that it begins in."""

    path: str
    text: str
    line: int


def text_lines(text: str) -> Iterator[TextLine]:
    """Every string of a valid document that is not a key, in order."""
    reader, line = _Reader(), 1
    for match in _TOKEN.finditer(text):
        if match["end"]:
            reader.end_line()
        elif match["bracket"] or match["equals"]:
            reader.mark(match[0])
        elif match["text"] is None:
            reader.word("" if match[0].startswith("#") else match[0])
        elif reader.in_value:
            yield TextLine(reader.path, _string(match["text"]), line)
        else:
            reader.word(_string(match["text"]))
        line += match[0].count("\n")


@dataclass(slots=True)
class _Reader:
    """Follows the tables and keys: ``words`` are those of the key or header that is being read."""

    table: str = ""
    key: str = ""
    words: list[str] = field(default_factory=list)
    depth: int = 0
    in_value: bool = False

    @property
    def path(self) -> str:
        return f"{self.table}.{self.key}" if self.table else self.key

    def end_line(self) -> None:
        if self.depth:
            return  # an array continues
        if not self.in_value and self.words[:1] == ["["]:
            self.table = "".join(word for word in self.words if word not in "[]")
        self.words, self.in_value = [], False

    def mark(self, mark: str) -> None:
        if self.in_value:
            self.depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(mark, 0)
        elif mark == "=":
            self.key, self.words, self.in_value = "".join(self.words), [], True
        else:
            self.words.append(mark)

    def word(self, word: str) -> None:
        if not self.in_value and word:
            self.words.append(word)


def _string(raw: str) -> str:
    if raw[0] == raw[1:2] == raw[2:3] or "\\" in raw:
        return str(tomllib.loads(f"x = {raw}")["x"])
    return raw[1:-1]


class Lines:
    """Looks up lines by the path of a key and the text of a string in its value; each place is given once."""

    def __init__(self, text: str) -> None:
        self._left: dict[str, list[TextLine]] = {}
        for found in text_lines(text):
            self._left.setdefault(found.text, []).append(found)

    def of(self, path: str, text: str) -> int:
        """The line of the next such string; 0 for none."""
        places = self._left.get(text, [])
        exact = [p for p in places if p.path == path]
        within = exact or [p for p in places if path.startswith(f"{p.path}.")]
        found = next(iter(within), None)
        if found is None:
            return 0
        places.remove(found)
        return found.line
