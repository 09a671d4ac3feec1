"""setup.py: the lists that the call of ``setup`` receives, by the positions of the syntax tree.

Literal lists and tuples are read in place, after a name that is bound once at the top level, in a dictionary that is
filled key by key, in a sum, and after a function that looks names up in a table (``deps_list("torch")``). An expression
of these alone is not a new requirement. Nothing is executed; expressions that are not literal are reported, never
guessed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Container, Iterator
from dataclasses import replace
from pathlib import Path

from wheelproof.pins.documents.names import project_of
from wheelproof.pins.documents.notices import of_requirement
from wheelproof.pins.documents.python_names import Literals, parse
from wheelproof.pins.model import Document, FoundRequirement, ItemList, Notice, Place, Role, Source

_KEYWORDS = {
    "install_requires": Role.RUNTIME,
    "setup_requires": Role.BUILD,
    "tests_require": Role.GROUP,
    "extras_require": Role.RUNTIME,
}
_REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+\s*(?:\[[^\]]*\])?\s*(?:[<>=!~]=?|===|@\s*\S)", re.ASCII)


def read(source: Source) -> Document:
    """The requirements of a setup.py. Raises FormatError, with the line, when it does not parse."""
    reader = _Reader(source, parse(source, source.text))
    found = reader.read()
    notices = [notice for requirement in found for notice in of_requirement(requirement)]
    return Document(
        "setup.py", source, found, (*notices, *reader.dynamic()), includes=tuple(dict.fromkeys(reader.files))
    )


# Calls that only copy or convert their arguments.
_LOOKUP = re.compile(r"\[\w+\[(?P<name>\w+)\] for (?P=name) in (?P<names>\w+)\]")
_COMBINING = frozenset(
    {
        "list",
        "tuple",
        "set",
        "sorted",
        "sum",
        "chain",
        "from_iterable",
        "dict",
        "frozenset",
        "values",
        "items",
        "keys",
        "copy",
        "union",
        "unique",
        "fromkeys",
        "reduce",
        "get",
        "itertools",
        "functools",
        "operator",
    }
)
_FILE = re.compile(r"[\w./-]+\.(?:txt|in|pip|list|reqs?)", re.ASCII)


class _Reader(Literals):
    def __init__(self, source: Source, tree: ast.Module) -> None:
        super().__init__(source, tree)
        self.found: list[FoundRequirement] = []
        self.placed: set[tuple[Place, int]] = set()  # where they are, each in a list of that identity
        self.texts: set[ast.expr] = set()  # the literals that were read
        self.unread: list[tuple[str, ast.expr]] = []
        self.named: dict[int, str] = {}  # by number of a found requirement: the name before it
        self.within: set[ast.AST] = set(self.changing)  # all that setup() receives
        self.visited: set[tuple[str, str]] = set()
        self.files: list[Path] = []
        self.reading: list[tuple[str, ast.expr, str]] = []
        self.behind: list[str] = []  # the names through which the reader came here

    def read(self) -> tuple[FoundRequirement, ...]:
        """All requirements; one after a name that others read, too, cannot be removed."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and _name_of(node.func) == "setup":
                for keyword in node.keywords:
                    if keyword.arg in _KEYWORDS:
                        self.value_of(keyword.value, _KEYWORDS[keyword.arg], keyword.arg)
                    elif keyword.arg is None:
                        self.keywords(keyword.value)
        shared = {name for name in self.named.values() if self.is_read_elsewhere(name)}
        kept = []
        for number, found in enumerate(self.found):
            name = self.named.get(number, "")
            kept.append(replace(found, items=None, values=()) if name in shared else found)
        return tuple(kept)

    def keywords(self, node: ast.expr) -> None:
        """The arguments of ``setup(**NAME)``."""
        value = self.value(node)
        if isinstance(node, ast.Name):
            self.within.update(ast.walk(node))
        pairs: list[tuple[str, ast.expr]] = []
        if isinstance(value, ast.Dict):
            pairs = [
                (key.value, child)
                for key, child in zip(value.keys, value.values, strict=True)
                if isinstance(key, ast.Constant) and isinstance(key.value, str)
            ]
        elif isinstance(value, ast.Call) and _name_of(value.func) == "dict":
            pairs = [(keyword.arg, keyword.value) for keyword in value.keywords if keyword.arg]
        else:
            self.unread.append(("setup", node))
        pairs += self.keyed.get(node.id, []) if isinstance(node, ast.Name) else []
        for key, child in pairs:
            if key in _KEYWORDS:
                self.value_of(child, _KEYWORDS[key], key)

    def is_read_elsewhere(self, name: str) -> bool:
        """Whether a name is used for anything but arguments of setup()."""
        return any(
            isinstance(node, ast.Name)
            and node.id == name
            and isinstance(node.ctx, ast.Load)
            and node not in self.within
            for node in ast.walk(self.tree)
        )

    def value_of(self, value: ast.expr, role: Role, section: str) -> None:
        """Read the requirements of an expression, if it is literal."""
        self.within.update(ast.walk(value))
        if isinstance(value, ast.Name):
            self.name(value, role, section)
        elif isinstance(value, ast.Dict):
            for key, child in zip(value.keys, value.values, strict=True):
                name = str(key.value) if isinstance(key, ast.Constant) and isinstance(key.value, str) else "*"
                self.value_of(child, role, section if key is None else f"{section}.{name}")
        elif isinstance(value, (ast.List, ast.Tuple, ast.Set)) and self.is_bracketed(value):
            layout = None if isinstance(value, ast.Set) else self.layout(value)  # without items {} is not a set
            self.elements(value.elts, layout, role, section)
        elif isinstance(value, ast.BinOp) and isinstance(value.op, (ast.Add, ast.BitOr)):
            self.value_of(value.left, role, section)
            self.value_of(value.right, role, section)
        elif isinstance(value, ast.IfExp):
            self.value_of(value.body, role, section)
            self.value_of(value.orelse, role, section)
        elif isinstance(value, ast.Constant) and isinstance(value.value, str):
            self.lines_of(value, role, section)
        elif isinstance(value, ast.Call) and self.is_read_call(value, role, section):
            pass
        elif not self.is_derived(value, section) and not self.reads_file(value, section):
            self.unread.append((section, value))

    def is_read_call(self, call: ast.Call, role: Role, section: str) -> bool:
        """Whether a call is of a function that returns a list, or looks one up; then that is read."""
        name, returned = _name_of(call.func), self.returned(call)
        if returned is not None and name not in self.behind:
            self.behind.append(name)
            self.value_of(returned, role, section)
            self.behind.pop()
            return True
        if self.is_lookup(call):
            self.elements(call.args, self.layout(call), role, section, table=True)
            return True
        return False

    def name(self, node: ast.Name, role: Role, section: str) -> None:
        """Read the value of a name, and the values added to it."""
        if (node.id, section) in self.visited:
            return
        self.visited.add((node.id, section))
        if node.id not in self.bindings:
            self.unread.append((section, node))
            return
        if any(seen == node.id for seen in self.behind):
            return
        self.behind.append(node.id)
        bound = self.bindings[node.id]
        if not (isinstance(bound, ast.Call) and not bound.args and not bound.keywords):  # dict(), defaultdict()
            self.value_of(bound, role, section)
        for added in self.added.get(node.id, ()):
            if isinstance(added, (ast.Constant, ast.JoinedStr)):
                self.within.update(ast.walk(added))
                self.element(added, None, 0, role, section)
            else:
                self.value_of(added, role, section)
        for key, child in self.keyed.get(node.id, ()):
            self.value_of(child, role, f"{section}.{key}")
        self.behind.pop()

    def returned(self, call: ast.Call) -> ast.expr | None:
        """The return value of a function without arguments in this module that only returns; None for any other."""
        function = self.functions.get(_name_of(call.func))
        if function is None or call.args or call.keywords or ast.unparse(function.args) or function.decorator_list:
            return None
        body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        return body[0].value if len(body) == 1 and isinstance(body[0], ast.Return) else None

    def is_lookup(self, call: ast.Call) -> bool:
        """Whether a function only looks its arguments up: ``def f(*names): return [TABLE[name] for name in names]``."""
        function = self.functions.get(_name_of(call.func))
        if function is None or call.keywords or function.args.vararg is None or function.args.args or not call.args:
            return False
        body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
        if len(body) != 1 or not isinstance(body[0], ast.Return) or not isinstance(body[0].value, ast.ListComp):
            return False
        made = ast.unparse(body[0].value)
        matched = _LOOKUP.fullmatch(made)
        return matched is not None and matched["names"] == function.args.vararg.arg

    def is_derived(self, value: ast.expr, section: str) -> bool:
        """Whether an expression is made of lists that are read anyway, and of nothing else.

        They are in the same dictionary, or are bound once and read now.
        """
        bound: set[str] = set(_COMBINING) - self.functions.keys() - self.bindings.keys()
        keys: set[ast.AST] = set()
        for node in ast.walk(value):
            if isinstance(node, ast.comprehension):
                bound |= {target.id for target in ast.walk(node.target) if isinstance(target, ast.Name)}
                keys.update(inner for condition in node.ifs for inner in ast.walk(condition))
            elif isinstance(node, ast.Subscript):
                keys.update(ast.walk(node.slice))
        counted = [node for node in ast.walk(value) if node not in keys]
        names = [node for node in counted if isinstance(node, ast.Name) and node.id not in bound]
        if any(_makes_new(node, bound) for node in counted) or any(node.id not in self.bindings for node in names):
            return False
        first = section.partition(".")[0]
        for node in names:
            if not any(name == node.id and seen.partition(".")[0] == first for name, seen in self.visited):
                self.name(node, _KEYWORDS.get(first, Role.RUNTIME), first)
        return bool(names)

    def reads_file(self, value: ast.expr, section: str) -> bool:
        """Whether an expression, or a function that it calls, names a requirements file that is present."""
        called = {_name_of(node.func) for node in ast.walk(value) if isinstance(node, ast.Call)}
        bodies = [self.functions[name] for name in called if name in self.functions]
        read = False
        for node in (inner for outer in (value, *bodies) for inner in ast.walk(outer)):
            text = node.value if isinstance(node, ast.Constant) else None
            if isinstance(text, str) and _FILE.fullmatch(text) and (self.source.path.parent / text).is_file():
                self.files.append(self.source.path.parent / text)
                self.reading.append((section, value, text))
                read = True
            elif isinstance(text, str) and _FILE.fullmatch(text) and text.endswith((".txt", ".in", ".pip")):
                self.unread.append((section, value))  # a file that is not present
                read = True
        return read

    def elements(
        self, nodes: list[ast.expr], items: ItemList | None, role: Role, section: str, *, table: bool = False
    ) -> None:
        for index, element in enumerate(nodes):
            self.element(element, items, index, role, section, table=table)

    def element(
        self,
        element: ast.expr,
        items: ItemList | None,
        index: int,
        role: Role,
        section: str,
        *,
        table: bool = False,
        within: bool = False,
    ) -> None:
        """One requirement: a text, its name, a row of a table, or a choice of two for one project."""
        if isinstance(element, ast.IfExp):
            both = [self.text(branch) for branch in (element.body, element.orelse)]
            names = {project_of(text.strip()) for text in both if text is not None}
            same = None not in both and len(names) == 1
            for branch in (element.body, element.orelse):
                self.element(branch, items if same else None, index, role, section, table=table, within=True)
            return
        start, end = self.span(element)
        raw = self.source.text[start:end]
        text = self.text(element)
        looked_up = table
        if isinstance(element, ast.Subscript) and isinstance(element.value, ast.Name) and text is None:
            text, looked_up = self.text(element.slice), True
        if text is None:
            head = self.head(element)
            if isinstance(element, ast.JoinedStr) and head:
                self.texts.update(node for node in ast.walk(element) if isinstance(node, ast.expr))
                place = Place(self.source.path, *self.source.position(start), section)
                self.put(FoundRequirement(head, raw, role, place, certain=False))
            else:
                self.unread.append((section, element))
            return
        self.texts.update(node for node in ast.walk(element) if isinstance(node, ast.expr))
        shown = text.strip()
        if looked_up:
            shown = self.looked_up(shown)
        literal = isinstance(element, ast.Constant) and not looked_up
        written = literal or looked_up  # a name in the list is read, and the list is left as it is
        simple = literal and raw[1:-1] == text and raw[:1] in "\"'"
        place = Place(self.source.path, *self.source.position(start), section)
        self.put(
            FoundRequirement(
                project_of(shown),
                shown,
                role,
                place,
                values=((start + 1, end - 1),) if simple and items is not None and not within else (),
                items=items if written else None,
                index=index,
            )
        )

    def put(self, found: FoundRequirement) -> None:
        if found.items:
            if (found.place, id(found.items)) in self.placed:
                return  # a list that is after two keys
            self.placed.add((found.place, id(found.items)))
        if self.behind:
            self.named[len(self.found)] = self.behind[-1]
        self.found.append(found)

    def head(self, element: ast.expr) -> str:
        """The name with which an f-string begins; "" when it is unknown."""
        if not isinstance(element, ast.JoinedStr) or not element.values:
            return ""
        first = element.values[0]
        return project_of(str(first.value) + "\u2026") if isinstance(first, ast.Constant) else ""

    def looked_up(self, key: str) -> str:
        """The requirement of a project: the text for it among the module's literals."""
        name = project_of(key)
        for node in ast.walk(self.tree):
            candidates: list[ast.expr] = []
            if isinstance(node, ast.List) and len(node.elts) > 1:
                candidates = node.elts
            elif isinstance(node, ast.Dict):
                pairs = zip(node.keys, node.values, strict=True)
                candidates = [value for label, value in pairs if isinstance(label, ast.Constant) and label.value == key]
            for element in candidates:
                text = element.value if isinstance(element, ast.Constant) else None
                if isinstance(text, str) and text != key and project_of(text) == name and _REQUIREMENT.match(text):
                    self.texts.add(element)
                    return text.strip()
        return key

    def lines_of(self, node: ast.Constant, role: Role, section: str) -> None:
        """Requirements in one text, a line each: they are read, and not removed."""
        self.texts.add(node)
        start = self.span(node)[0]
        for line in str(node.value).splitlines():
            text = line.partition(" #")[0].strip()
            if text and not text.startswith("#"):
                place = Place(self.source.path, *self.source.position(start), section)
                self.put(FoundRequirement(project_of(text), text, role, place))

    def dynamic(self) -> Iterator[Notice]:
        """Notices about expressions that are not literal, and about literals elsewhere that look like pins."""
        for section, node, text in self.reading:
            place = Place(self.source.path, node.lineno, node.col_offset + 1, section)
            yield Notice("reads-file", f"{section} is made of {text}, which is read instead", place)
        for section, node in self.unread:
            shown = " ".join(ast.unparse(node).split())[:80]
            place = Place(self.source.path, node.lineno, node.col_offset + 1, section)
            yield Notice("dynamic", f"{section} has {shown}, which is not literal: not read, not changed", place)
        for other in ast.walk(self.tree):
            if isinstance(other, ast.Constant) and isinstance(other.value, str) and other not in self.texts:
                text = other.value.strip()
                name = project_of(text) if len(text) < 200 and _REQUIREMENT.match(text) else ""
                if name:
                    message = f"{text!r} is outside the literal lists of setup(): not changed"
                    place = Place(self.source.path, other.lineno, other.col_offset + 1)
                    yield Notice("dynamic", message, place, about=(name,))


def _name_of(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _makes_new(node: ast.AST, combining: Container[str]) -> bool:
    """Whether a part of an expression may bring a requirement that no list has."""
    if isinstance(node, ast.Call):
        return _name_of(node.func) not in combining
    text = isinstance(node, ast.Constant) and isinstance(node.value, str)
    return text or isinstance(node, (ast.JoinedStr, ast.Lambda, ast.Await))
