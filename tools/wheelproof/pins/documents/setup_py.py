"""setup.py: the literal lists of the call of ``setup``, by the positions of the syntax tree.

Nothing is executed, and what is not literal is reported, never guessed.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator

from wheel_checks.errors import FormatError
from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.source import Source
from wheelproof.pins.model import Document, FoundRequirement, ItemList, Notice, Place, Role, Span

_KEYWORDS = {
    "install_requires": Role.RUNTIME,
    "setup_requires": Role.BUILD,
    "tests_require": Role.GROUP,
    "extras_require": Role.RUNTIME,
}
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+\s*(?:\[[^\]]*\])?\s*(?:[<>=!~]=?|===|@\s*\S)", re.ASCII)
_BETWEEN = re.compile(r"\s+|#[^\r\n]*|\\\r?\n")


def read(source: Source) -> Document:
    """The requirements of a setup.py. Raises FormatError, with the line, when it does not parse."""
    reader = _Reader(source, parse(source, source.text))
    found = tuple(reader.read())
    notices = [notice for requirement in found for notice in of_requirement(requirement)]
    return Document("setup.py", source, found, (*notices, *reader.dynamic()))


def parse(source: Source, text: str) -> ast.Module:
    """The syntax tree. Raises FormatError, with the line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape sequence in somebody's setup.py is no business of ours
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        raise FormatError(f"{source.path} is not valid Python{line}: {getattr(error, 'msg', error)}") from None


class _Reader:
    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.lines = [0]
        for line in re.compile(r"\r\n|\r|\n").finditer(source.text):  # as the tokenizer counts lines
            self.lines.append(line.end())
        self.texts: set[ast.expr] = set()  # the literals that were read
        self.unread: list[tuple[str, ast.expr]] = []

    def read(self) -> Iterator[FoundRequirement]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _name_of(node.func) == "setup":
                for keyword in node.keywords:
                    if keyword.arg in _KEYWORDS:
                        yield from self.value(keyword.value, _KEYWORDS[keyword.arg], keyword.arg)

    def value(self, value: ast.expr, role: Role, section: str) -> Iterator[FoundRequirement]:
        if isinstance(value, ast.Dict):
            for key, child in zip(value.keys, value.values, strict=True):
                name = str(key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str) else "*"
                yield from self.value(child, role, f"{section}.{name}")
        elif isinstance(value, ast.List):
            yield from self.list(value, role, section)
        else:
            self.unread.append((section, value))

    def list(self, node: ast.List, role: Role, section: str) -> Iterator[FoundRequirement]:
        items = self.layout(node)
        for index, element in enumerate(node.elts):
            if not isinstance(element, ast.Constant) or not isinstance(element.value, str):
                self.unread.append((section, element))
                continue
            self.texts.add(element)
            start, end = self.span(element)
            raw, text = self.source.text[start:end], element.value.strip()
            simple = raw[1:-1] == element.value and raw[:1] in "\"'"
            yield FoundRequirement(
                project_of(text),
                text,
                role,
                Place(self.source.path, *self.source.position(start), section),
                values=((start + 1, end - 1),) if simple else (),
                items=items,
                index=index,
            )

    def layout(self, node: ast.List) -> ItemList:
        """The spans of the elements, parentheses around them included, and of the commas."""
        opening, closing = self.span(node)
        spans = [self.span(element) for element in node.elts]
        separators: list[int | None] = []
        if spans:
            spans[0] = (self.between(opening + 1, spans[0][0])[2], spans[0][1])
        for index, (_, end) in enumerate(spans):
            following = spans[index + 1][0] if index + 1 < len(spans) else closing - 1
            comma, close, start = self.between(end, following)
            separators.append(comma)
            spans[index] = (spans[index][0], close)
            if index + 1 < len(spans):
                spans[index + 1] = (start, spans[index + 1][1])
        return ItemList(opening + 1, closing - 1, tuple(spans), tuple(separators))

    def between(self, start: int, end: int) -> tuple[int | None, int, int]:
        """Between two elements: the comma, the end of the first with its parentheses, the start of the second."""
        comma: int | None = None
        close, begin, at = start, end, start
        while at < end:
            if match := _BETWEEN.match(self.source.text, at):
                at = match.end()
                continue
            character = self.source.text[at]
            if character == ",":
                comma = at
            elif character == ")":
                close = at + 1
            elif character == "(" and begin == end:
                begin = at
            at += 1
        return comma, close, begin

    def span(self, node: ast.expr) -> Span:
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno or 1, node.end_col_offset or 0)

    def offset(self, line: int, column: int) -> int:
        """The offset of a position of the syntax tree, whose columns count bytes of UTF-8."""
        start = self.lines[line - 1]
        text = self.source.text[start : start + column]
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))

    def dynamic(self) -> Iterator[Notice]:
        """Notices about what is not literal, and about literals elsewhere that look like pins."""
        for section, node in self.unread:
            shown = " ".join(ast.unparse(node).split())[:80]
            place = Place(self.source.path, node.lineno, node.col_offset + 1, section)
            yield Notice("dynamic", f"{section} has {shown}, which is not literal: not read, not changed", place)
        for other in ast.walk(self.tree):
            if isinstance(other, ast.Constant) and isinstance(other.value, str) and other not in self.texts:
                text = other.value.strip()
                name = project_of(text) if len(text) < 200 and _REQUIREMENT.match(text) else ""
                if name:
                    message = f"{text!r} stands outside the literal lists of setup(): not changed"
                    place = Place(self.source.path, other.lineno, other.col_offset + 1)
                    yield Notice("dynamic", message, place, about=(name,))


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""
