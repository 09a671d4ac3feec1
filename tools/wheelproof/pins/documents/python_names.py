"""The names of a Python file that are bound once at the top level, and values added to them. Nothing is executed."""

from __future__ import annotations

import ast
import re
import warnings
from collections import Counter

from wheel_checks.errors import FormatError
from wheelproof.pins.model import ItemList, Source, Span

_BETWEEN = re.compile(r"\s+|#[^\r\n]*|\\\r?\n")
_ADDING = frozenset({"append", "extend", "update"})


def parse(source: Source, text: str) -> ast.Module:
    """The syntax tree. Raises FormatError, with the line."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an invalid escape sequence in someone's setup.py is none of our business
            return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        raise FormatError(f"{source.path} is not valid Python{line}: {getattr(error, 'msg', error)}") from None


class Literals:
    """The names of a module that are bound once, at the top level, and where its nodes are in the text."""

    def __init__(self, source: Source, tree: ast.Module) -> None:
        self.source = source
        self.tree = tree
        self.lines = [0]
        for line in re.compile(r"\r\n|\r|\n").finditer(source.text):  # as the tokenizer counts lines
            self.lines.append(line.end())
        self.bindings: dict[str, ast.expr] = {}
        self.functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
        self.added: dict[str, list[ast.expr]] = {}  # X += [...], X.append(...), X.extend(...), wherever it is
        self.keyed: dict[str, list[tuple[str, ast.expr]]] = {}  # X["key"] = ...
        self.changing: set[ast.AST] = set()  # the names in these, which are no other use of them
        self._bind()

    def value(self, node: ast.expr) -> ast.expr:
        """The value of a name that is bound once; any other expression is returned as it is."""
        seen: set[str] = set()
        while isinstance(node, ast.Name) and node.id in self.bindings and node.id not in seen:
            seen.add(node.id)
            node = self.bindings[node.id]
        return node

    def text(self, node: ast.expr) -> str | None:
        """The text that an expression is: a constant, a name of one, an f-string of such; None for all others."""
        value = self.value(node)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
        if isinstance(value, ast.JoinedStr):
            parts = [self.text(v.value if isinstance(v, ast.FormattedValue) else v) for v in value.values]
            return None if None in parts else "".join(part or "" for part in parts)
        return None

    def _bind(self) -> None:
        stored: Counter[str] = Counter()
        for node in ast.walk(self.tree):
            stored.update(_stores(node))
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name) and isinstance(node.op, ast.Add):
                stored[node.target.id] -= 1
                self.added.setdefault(node.target.id, []).append(node.value)
            elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
                self._call(node.value)
            elif isinstance(node, ast.Assign):
                for target in node.targets:
                    self._key(target, node.value)
            elif isinstance(node, ast.AugAssign):
                self._key(node.target, node.value)
        self._bind_top_level(stored)

    def _bind_top_level(self, stored: Counter[str]) -> None:
        for statement in self.tree.body:
            if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                target, value = statement.targets[0], statement.value
            elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
                target, value = statement.target, statement.value
            else:
                continue
            if isinstance(target, ast.Name) and stored[target.id] == 1:
                self.bindings[target.id] = value

    def _key(self, target: ast.expr, value: ast.expr) -> None:
        """Note ``X["key"] = value``, and values added under a key."""
        if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
            self.changing.add(target.value)
            key = target.slice
            label = key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else "*"
            self.keyed.setdefault(target.value.id, []).append((label, value))

    def _call(self, call: ast.Call) -> None:
        """Note ``X.append(value)`` and similar calls."""
        function = call.func
        if not (isinstance(function, ast.Attribute) and function.attr in _ADDING and len(call.args) == 1):
            return
        if isinstance(function.value, ast.Name):
            self.changing.add(function.value)
            self.added.setdefault(function.value.id, []).append(call.args[0])
        else:
            self._key(function.value, call.args[0])

    def span(self, node: ast.expr) -> Span:
        """The span of an expression in the text."""
        return self.offset(node.lineno, node.col_offset), self.offset(node.end_lineno or 1, node.end_col_offset or 0)

    def offset(self, line: int, column: int) -> int:
        """The offset of a position of the syntax tree, whose columns count bytes of UTF-8."""
        start = self.lines[line - 1]
        text = self.source.text[start : start + column]
        return start + (column if text.isascii() else len(text.encode()[:column].decode()))

    def is_bracketed(self, node: ast.expr) -> bool:
        """Whether a list or tuple is in brackets."""
        return self.source.text[self.span(node)[0]] in "([{"

    def layout(self, node: ast.List | ast.Tuple | ast.Call) -> ItemList:
        """The spans of the elements, parentheses around them included, and of the commas."""
        opening, closing = self.span(node)
        elements = node.args if isinstance(node, ast.Call) else node.elts
        if isinstance(node, ast.Call):
            opening = self.source.text.find("(", self.span(node.func)[1])
        spans = [self.span(element) for element in elements]
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
        alone = isinstance(node, ast.Tuple)
        return ItemList(opening + 1, closing - 1, tuple(spans), tuple(separators), comma_alone=alone)

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


def _stores(node: ast.AST) -> dict[str, int]:
    """The names that a node binds, and how often; names of another scope count twice."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
        return {node.id: 1}
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name: 1}
    if isinstance(node, ast.arg):
        return {node.arg: 1}
    if isinstance(node, ast.alias):
        return {(node.asname or node.name).partition(".")[0]: 1}
    if isinstance(node, (ast.Global, ast.Nonlocal)):
        return dict.fromkeys(node.names, 2)
    return {}
