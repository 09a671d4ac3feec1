"""Evaluates the expressions of a Python module as far as literals go, and notes which libraries its calls open."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wheel_checks.formats.wheel.python_values import (
    UNKNOWN,
    Many,
    Method,
    Named,
    Table,
    Text,
    Value,
    attribute,
    call_known,
    call_method,
    combine,
    either,
    join_paths,
    one_text,
    subscript,
    texts_of,
)

MOST_STEPS = 60_000
"""Statements and expressions of a module that are followed; torch's largest module takes 20,000."""
MOST_ITEMS = 64
"""Items of a loop or collection that are followed."""
_MOST_ACTIONS = 4_000

Raw = tuple[Any, ...]
"""The fields of an action: kind, target, names, line, tried, conditional, one_of."""

# Functions that open the library whose path is their first (0) or second (1) argument, by their dotted names.
_OPENERS = {
    "ctypes.CDLL": 0,
    "ctypes.PyDLL": 0,
    "importlib.util.spec_from_file_location": 1,
    "importlib.machinery.ExtensionFileLoader": 1,
    "tvm_ffi.load_module": 0,
}
# Functions and methods of any object that do: ctypes.cdll, torch.ops, torch.classes, tensorflow, cffi's FFI.
_OPENING_NAMES = ("LoadLibrary", "load_library", "dlopen", "load_op_library")
_FINDERS = ("load_nvidia_dynamic_lib",)  # cuda-pathfinder
_IMPORTERS = ("importlib.import_module", "__import__")


class OutOfStepsError(Exception):
    """The module takes too many steps."""


@dataclass(slots=True)
class Frame:
    """State of the interpreter: names, recorded actions, and the number of enclosing guards of each kind."""

    names: dict[str, Value]
    actions: list[Raw]
    returned: list[Value] = field(default_factory=list)
    tried: int = 0
    conditional: int = 0
    depth: int = 0
    one_of: int = 0

    def inside(self, names: dict[str, Value], deeper: int) -> Frame:
        """A frame with other names, the same guards and the same list of actions."""
        return Frame(names, self.actions, [], self.tried, self.conditional, self.depth + deeper, self.one_of)


class Expressions(ABC):
    """Evaluates expressions; calls of functions of the module go to :meth:`run_function`."""

    def __init__(self, package: str, known: dict[str, Value]) -> None:
        self.package = package
        self.globals = known
        self.steps = MOST_STEPS
        self._kinds: dict[type[ast.expr], Callable[[Any, Frame], Value]] = {
            ast.Constant: lambda node, _: one_text(str(node.value)) if isinstance(node.value, str | int) else UNKNOWN,
            ast.Name: lambda node, frame: frame.names.get(node.id, self.globals.get(node.id, Named(node.id))),
            ast.Attribute: lambda node, frame: attribute(self.value(node.value, frame), node.attr),
            ast.JoinedStr: lambda node, frame: combine(_together, *(self.value(part, frame) for part in node.values)),
            ast.FormattedValue: lambda node, frame: self.value(node.value, frame),
            ast.BinOp: lambda node, frame: _operate(
                node.op, self.value(node.left, frame), self.value(node.right, frame)
            ),
            ast.List: lambda node, frame: Many(tuple(self._items(node.elts, frame))),
            ast.Tuple: lambda node, frame: Many(tuple(self._items(node.elts, frame))),
            ast.Set: lambda node, frame: Many(tuple(self._items(node.elts, frame))),
            ast.Dict: self._table,
            ast.Subscript: lambda node, frame: subscript(self.value(node.value, frame), self.value(node.slice, frame)),
            ast.IfExp: self._choice,
            ast.BoolOp: self._any_of,
            ast.ListComp: self._comprehension,
            ast.SetComp: self._comprehension,
            ast.GeneratorExp: self._comprehension,
            ast.NamedExpr: self._named,
            ast.Call: self._call,
            ast.Lambda: lambda node, frame: UNKNOWN,  # noqa: ARG005  # one signature for all
        }

    def step(self) -> None:
        """Count one step. Raises OutOfStepsError."""
        self.steps -= 1
        if self.steps < 0:
            raise OutOfStepsError

    @abstractmethod
    def is_own(self, name: str, frame: Frame) -> bool:
        """True for a function that the module defines."""

    @abstractmethod
    def run_function(self, name: str, given: list[Value], named: dict[str, Value], frame: Frame) -> Value:
        """Carry out a call of a function that the module defines."""

    def value(self, node: ast.expr, frame: Frame) -> Value:
        """The value of the expression. Raises OutOfStepsError."""
        self.step()
        evaluate = self._kinds.get(type(node))
        if evaluate is not None:
            return evaluate(node, frame)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
        return UNKNOWN

    def truth(self, node: ast.expr, frame: Frame) -> bool | None:
        """True or False if the text decides it on Linux."""
        self.step()
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            truth = self.truth(node.operand, frame)
            return None if truth is None else not truth
        if isinstance(node, ast.BoolOp):
            stop = isinstance(node.op, ast.Or)
            truths = [self.truth(value, frame) for value in node.values]
            return stop if stop in truths else None if None in truths else not stop
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return _compare(node.ops[0], self.value(node.left, frame), self.value(node.comparators[0], frame))
        if isinstance(node, ast.Constant):
            return bool(node.value)
        value = self.value(node, frame)
        known = texts_of(value)
        if isinstance(value, Named):
            return None if known == ("*",) else bool(known[0])
        return known == ("True",) if known in (("True",), ("False",)) else None

    def bind(self, target: ast.expr, value: Value, frame: Frame) -> None:
        """Give the value to the names of the target."""
        if isinstance(target, ast.Name):
            frame.names[target.id] = value
        elif isinstance(target, ast.Tuple | ast.List):
            parts = value.items if isinstance(value, Many) and len(value.items) == len(target.elts) else ()
            for number, one in enumerate(target.elts):
                self.bind(one, parts[number] if parts else UNKNOWN, frame)
        else:
            self.value(target, frame)

    def note(self, frame: Frame, kind: str, target: str, names: tuple[str, ...], node: ast.stmt | ast.expr) -> None:
        """Note an action under the guards of the frame."""
        if len(frame.actions) < _MOST_ACTIONS:
            guards = (frame.tried > 0, frame.conditional > 0, frame.one_of > 0)
            frame.actions.append((kind, target, names, node.lineno, *guards))

    def absolute(self, module: str, level: int) -> str:
        """The dotted name of a module that is named relative to this one."""
        if not level:
            return module
        parts = self.package.split(".")
        return ".".join([*parts[: len(parts) - level + 1], *([module] if module else [])])

    def _items(self, items: Sequence[ast.expr], frame: Frame) -> Iterator[Value]:
        for item in items[: 4 * MOST_ITEMS]:
            if isinstance(item, ast.Starred):
                value = self.value(item.value, frame)
                yield from value.items if isinstance(value, Many) else (value,)
            else:
                yield self.value(item, frame)

    def _table(self, node: ast.Dict, frame: Frame) -> Value:
        pairs = list(zip(node.keys, node.values, strict=True))[: 4 * MOST_ITEMS]
        return Table(tuple((self.value(k, frame), self.value(v, frame)) for k, v in pairs if k is not None))

    def _choice(self, node: ast.IfExp, frame: Frame) -> Value:
        truth = self.truth(node.test, frame)
        if truth is not None:
            return self.value(node.body if truth else node.orelse, frame)
        frame.conditional += 1
        value = either(self.value(node.body, frame), self.value(node.orelse, frame))
        frame.conditional -= 1
        return value

    def _any_of(self, node: ast.BoolOp, frame: Frame) -> Value:
        first, *others = [self.value(value, frame) for value in node.values]
        for other in others:
            first = either(first, other)
        return first

    def _named(self, node: ast.NamedExpr, frame: Frame) -> Value:
        value = self.value(node.value, frame)
        self.bind(node.target, value, frame)
        return value

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp, frame: Frame) -> Value:
        inner = frame.inside(dict(frame.names), 0)
        made: list[Value] = []

        def run(level: int) -> None:
            if level == len(node.generators):
                made.append(self.value(node.elt, inner))
                return
            generator = node.generators[level]
            value = self.value(generator.iter, inner)
            for item in value.items[:MOST_ITEMS] if isinstance(value, Many) else (value,):
                self.bind(generator.target, item, inner)
                for test in generator.ifs:
                    self.value(test, inner)
                run(level + 1)

        run(0)
        return Many(tuple(made[:MOST_ITEMS]))

    def _call(self, node: ast.Call, frame: Frame) -> Value:
        of = self.value(node.func, frame)
        given = list(self._items(node.args, frame))
        named = {keyword.arg: self.value(keyword.value, frame) for keyword in node.keywords if keyword.arg}
        for keyword in node.keywords:
            if keyword.arg is None:
                self.value(keyword.value, frame)
        if isinstance(of, Method):
            return self._call_method(node, of, given, frame)
        if not isinstance(of, Named):
            return UNKNOWN
        if self.is_own(of.name, frame):
            return self.run_function(of.name, given, named, frame)
        return self._call_named(node, of.name, given, named, frame)

    def _call_method(self, node: ast.Call, of: Method, given: list[Value], frame: Frame) -> Value:
        if of.name in _OPENING_NAMES and given:
            return self._open(frame, given[0], node)
        if of.name in ("append", "extend", "add", "insert") and given:
            self._append(node, of, given[-1], frame)
        return call_method(of.of, of.name, given)

    def _call_named(
        self, node: ast.Call, name: str, given: list[Value], named: dict[str, Value], frame: Frame
    ) -> Value:
        base, _, last = name.rpartition(".")
        place = _OPENERS.get(name, 0 if given and base and last in _OPENING_NAMES else None)
        if place is not None:
            path = given[place] if len(given) > place else next(iter(named.values()), UNKNOWN)
            return self._open(frame, path, node)
        if last in _FINDERS:
            self.note(frame, "find", "", tuple(t for v in given[:1] for t in texts_of(v) if t != "*"), node)
            return UNKNOWN
        if name in _IMPORTERS and given:
            return self._import(node, texts_of(given[0]), frame)
        known = call_known(name, given)
        if known is None and base:
            self.note(frame, "call", name, tuple("|".join(texts_of(value)) for value in given[:4]), node)
        return UNKNOWN if known is None else known

    def _import(self, node: ast.Call, modules: tuple[str, ...], frame: Frame) -> Value:
        for module in modules:
            name = module.lstrip(".")
            self.note(frame, "import", self.absolute(name, len(module) - len(name)), (), node)
        return Named(modules[0]) if len(modules) == 1 and modules[0] != "*" else UNKNOWN

    def _append(self, node: ast.Call, of: Method, new: Value, frame: Frame) -> None:
        """``paths.append(x)`` adds to the list that a name is bound to."""
        target = node.func
        if not isinstance(target, ast.Attribute) or not isinstance(target.value, ast.Name):
            return
        if isinstance(of.of, Many) and len(of.of.items) < MOST_ITEMS:
            added = new.items if of.name == "extend" and isinstance(new, Many) else (new,)
            frame.names[target.value.id] = Many((*of.of.items, *added))

    def _open(self, frame: Frame, value: Value, node: ast.Call) -> Value:
        for patterns in [texts_of(item) for item in value.items] if isinstance(value, Many) else [texts_of(value)]:
            self.note(frame, "load", "", patterns, node)
        return UNKNOWN


def _together(*parts: str) -> str:
    return "".join(parts)


def _operate(operator: ast.operator, left: Value, right: Value) -> Value:
    if isinstance(operator, ast.Add):
        if isinstance(left, Many) and isinstance(right, Many):
            return Many((*left.items, *right.items)[: 4 * MOST_ITEMS])
        return combine(_together, left, right)
    if isinstance(operator, ast.Div):
        return combine(join_paths, left, right)
    if isinstance(operator, ast.Mod) and isinstance(left, Text):
        return combine(lambda text: "*".join(text.replace("%d", "%s").split("%s")), left)
    return UNKNOWN


def _compare(operator: ast.cmpop, left: Value, right: Value) -> bool | None:
    """True or False if both sides are known texts; only ``==``, ``in`` and their opposites."""
    one, other = texts_of(left), texts_of(right)
    if len(one) != 1 or isinstance(left, Many) or any("*" in text or "\x01" in text for text in (*one, *other)):
        return None
    if isinstance(operator, ast.Eq | ast.NotEq):
        return None if isinstance(right, Many) or len(other) != 1 else (one == other) == isinstance(operator, ast.Eq)
    if isinstance(operator, ast.In | ast.NotIn) and isinstance(right, Many):
        return (one[0] in other) == isinstance(operator, ast.In)
    return None
