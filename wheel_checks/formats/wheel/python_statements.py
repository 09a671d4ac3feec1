"""Follows the statements of a Python module as an import would, and notes imports, openings of libraries and calls.

An abstract interpreter: no statement has an effect but on names. Steps and depth are bounded.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from wheel_checks.formats.wheel.python_expressions import (
    MOST_ITEMS,
    Expressions,
    Frame,
    OutOfStepsError,
    Raw,
)
from wheel_checks.formats.wheel.python_values import (
    UNKNOWN,
    Many,
    Method,
    Named,
    Table,
    Text,
    Value,
    combine,
    either,
    one_text,
)

_DEEPEST_CALL = 8
_CAUGHT = {"ImportError", "ModuleNotFoundError", "OSError", "Exception", "BaseException", "EnvironmentError"}

_Definition = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(slots=True)
class Found:
    """What the module does when it is imported, and what its functions do when they are called."""

    actions: list[Raw] = field(default_factory=list)
    functions: list[tuple[str, tuple[str, ...], list[Raw]]] = field(default_factory=list)
    fault: str = ""


class Interpreter(Expressions):
    """Follows one module at ``member``, a path in site-packages, which belongs to ``package``."""

    def __init__(self, member: str, package: str, tree: ast.Module) -> None:
        known: dict[str, Value] = {
            "__file__": one_text(member),
            "__name__": one_text(package),
            "__package__": one_text(package),
            "__path__": Many((one_text(package.replace(".", "/")),)),
        }
        super().__init__(package, known)
        self._tree = tree
        self._running: list[str] = []
        self._defined: dict[str, _Definition] = {}
        self._statements: dict[type[ast.stmt], Callable[[Any, Frame], bool | None]] = {
            ast.Import: self._import_modules,
            ast.ImportFrom: self._import_names,
            ast.FunctionDef: self._define,
            ast.AsyncFunctionDef: self._define,
            ast.ClassDef: lambda node, frame: self._class(node.body, frame),
            ast.If: self._if,
            ast.Try: self._try,
            ast.TryStar: self._try,
            ast.With: self._with,
            ast.AsyncWith: self._with,
            ast.For: self._for,
            ast.AsyncFor: self._for,
            ast.While: self._while,
            ast.Return: self._return,
            ast.Raise: lambda node, frame: True,  # noqa: ARG005  # one signature for all
            ast.Assign: self._assign,
            ast.AnnAssign: self._annotated,
            ast.AugAssign: self._augmented,
            ast.Match: self._match,
        }

    def run(self) -> Found:
        """The actions of the import, and of each function."""
        found = Found()
        try:
            self._block(self._tree.body, Frame(self.globals, found.actions))
            for name, definition in list(self._defined.items()):
                parameters = _parameters(definition)
                actions: list[Raw] = []
                names: dict[str, Value] = {p: one_text(f"\x01{p}\x02") for p in parameters}
                self._running.append(name)
                self._block(definition.body, Frame({**self.globals, **names}, actions, depth=1))
                self._running.pop()
                found.functions.append((name, parameters, actions))
        except OutOfStepsError:
            found.fault = "evaluating it takes too many steps"
        return found

    def is_own(self, name: str, frame: Frame) -> bool:
        """True for a function that the module defines, unless the name means something else here."""
        return name in self._defined and name not in frame.names

    def run_function(self, name: str, given: list[Value], named: dict[str, Value], frame: Frame) -> Value:
        """Follow the body with these arguments; what it returns."""
        if name in self._running or len(self._running) >= _DEEPEST_CALL:
            return UNKNOWN
        definition = self._defined[name]
        parameters = _parameters(definition)
        defaults = definition.args.defaults
        quiet = Frame(self.globals, [], depth=1)
        names: dict[str, Value] = dict.fromkeys(parameters, UNKNOWN)
        names |= {
            parameter: self.value(default, quiet)
            for parameter, default in zip(parameters[len(parameters) - len(defaults) :], defaults, strict=False)
        }
        names |= dict(zip(parameters, given, strict=False)) | named
        inner = frame.inside({**self.globals, **names}, 1)
        self._running.append(name)
        self._block(definition.body, inner)
        self._running.pop()
        result: Value | None = None
        for value in inner.returned:
            result = value if result is None else either(result, value)
        return UNKNOWN if result is None else result

    def _block(self, statements: Sequence[ast.stmt], frame: Frame) -> bool:
        """True when what follows is not reached for certain."""
        return any(self._statement(statement, frame) for statement in statements)

    def _statement(self, node: ast.stmt, frame: Frame) -> bool:
        self.step()
        follow = self._statements.get(type(node))
        if follow is not None:
            return bool(follow(node, frame))
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.value(child, frame)
        return False

    def _import_modules(self, node: ast.Import, frame: Frame) -> None:
        for alias in node.names:
            self.note(frame, "import", alias.name, (), node)
            top = alias.name.partition(".")[0]
            frame.names[alias.asname or top] = Named(alias.name if alias.asname else top)

    def _import_names(self, node: ast.ImportFrom, frame: Frame) -> None:
        base = self.absolute(node.module or "", node.level)
        self.note(frame, "import", base, tuple(alias.name for alias in node.names), node)
        for alias in node.names:
            frame.names[alias.asname or alias.name] = Named(f"{base}.{alias.name}")

    def _define(self, node: _Definition, frame: Frame) -> None:
        for decorator in node.decorator_list:
            self.value(decorator, frame)
        if frame.depth == 0:
            self._defined[node.name] = node
            frame.names.pop(node.name, None)

    def _class(self, body: Sequence[ast.stmt], frame: Frame) -> None:
        self._block(body, frame.inside(dict(frame.names), 1))

    def _if(self, node: ast.If, frame: Frame) -> bool:
        truth = self.truth(node.test, frame)
        if truth is not None:
            return self._block(node.body if truth else node.orelse, frame)
        before = dict(frame.names)
        frame.conditional += 1
        ends = self._block(node.body, frame)
        after = dict(frame.names)
        frame.names.clear()
        frame.names.update(before)
        otherwise_ends = self._block(node.orelse, frame)
        frame.conditional -= 1
        if otherwise_ends and not ends:
            frame.names.update(after)
        elif ends == otherwise_ends:
            for name, value in after.items():
                frame.names[name] = either(value, frame.names.get(name, value))
        return ends and otherwise_ends

    def _try(self, node: ast.Try | ast.TryStar, frame: Frame) -> bool:
        caught = any(
            _catches(handler) and not _raises(handler.body) and not _tries_again(handler.body, node.body)
            for handler in node.handlers
        )
        frame.tried += caught
        ended = self._block(node.body, frame)
        frame.tried -= caught
        if _asks_for_a_name(node) and not isinstance(self.value(node.body[0].value, frame), Text):  # type: ignore[attr-defined]  # it is an expression
            return self._block(node.handlers[0].body, frame)
        for handler in node.handlers:
            frame.conditional += 1
            before = dict(frame.names)
            self._block(handler.body, frame)
            for name, value in before.items():
                frame.names[name] = either(value, frame.names.get(name, value))
            frame.conditional -= 1
        if not ended:
            ended = self._block(node.orelse, frame)
        return self._block(node.finalbody, frame) or (ended and not caught)

    def _with(self, node: ast.With | ast.AsyncWith, frame: Frame) -> bool:
        suppresses = False
        for item in node.items:
            call = item.context_expr
            if isinstance(call, ast.Call):
                suppresses |= self.value(call.func, frame) == Named("contextlib.suppress")
            value = self.value(call, frame)
            if item.optional_vars is not None:
                self.bind(item.optional_vars, value, frame)
        frame.tried += suppresses
        ended = self._block(node.body, frame)
        frame.tried -= suppresses
        return ended and not suppresses

    def _for(self, node: ast.For | ast.AsyncFor, frame: Frame) -> None:
        value = self.value(node.iter, frame)
        items: Sequence[Value] = value.items[:MOST_ITEMS] if isinstance(value, Many) else (value,)
        if isinstance(value, Table):
            items = [key for key, _ in value.pairs[:MOST_ITEMS]]
        elif isinstance(value, Named | Method):
            items = (UNKNOWN,)
        ends = any(isinstance(inner, ast.Return | ast.Break) for one in node.body for inner in _outside_functions(one))
        frame.one_of += ends
        for item in items:
            self.bind(node.target, item, frame)
            self._block(node.body, frame)
        frame.one_of -= ends
        self._block(node.orelse, frame)

    def _while(self, node: ast.While, frame: Frame) -> None:
        self.value(node.test, frame)
        self._block(node.body, frame)

    def _return(self, node: ast.Return, frame: Frame) -> bool:
        frame.returned.append(one_text("") if node.value is None else self.value(node.value, frame))
        return True

    def _assign(self, node: ast.Assign, frame: Frame) -> None:
        value = self.value(node.value, frame)
        for target in node.targets:
            self.bind(target, value, frame)

    def _annotated(self, node: ast.AnnAssign, frame: Frame) -> None:
        if node.value is not None:
            self.bind(node.target, self.value(node.value, frame), frame)

    def _augmented(self, node: ast.AugAssign, frame: Frame) -> None:
        old, new = self.value(node.target, frame), self.value(node.value, frame)
        both = isinstance(old, Many) and isinstance(new, Many)
        value = either(old, new) if both else combine(lambda a, b: a + b, old, new)
        self.bind(node.target, value if isinstance(node.op, ast.Add) else UNKNOWN, frame)

    def _match(self, node: ast.Match, frame: Frame) -> None:
        self.value(node.subject, frame)
        for case in node.cases:
            frame.conditional += 1
            self._block(case.body, frame)
            frame.conditional -= 1


def _parameters(definition: _Definition) -> tuple[str, ...]:
    return tuple(argument.arg for argument in (*definition.args.posonlyargs, *definition.args.args))


def _catches(handler: ast.ExceptHandler) -> bool:
    if handler.type is None:
        return True
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(isinstance(kind, ast.Name) and kind.id in _CAUGHT for kind in types)


def _asks_for_a_name(node: ast.Try | ast.TryStar) -> bool:
    """True for ``try: NAME`` with ``except NameError``."""
    body, handlers = node.body, node.handlers
    return (
        len(body) == len(handlers) == 1
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Name)
        and isinstance(handlers[0].type, ast.Name)
        and handlers[0].type.id == "NameError"
    )


def _raises(body: Sequence[ast.stmt]) -> bool:
    """True when the handler raises in every case."""
    return any(isinstance(statement, ast.Raise) for statement in body)


def _tries_again(handler: Sequence[ast.stmt], body: Sequence[ast.stmt]) -> bool:
    """True when the handler ends in the import that failed, for example after importing torch."""
    imports = isinstance(body[0], ast.Import | ast.ImportFrom) and len(body) == 1
    return imports and ast.dump(body[0]) in map(ast.dump, handler)


def _outside_functions(node: ast.AST) -> Iterator[ast.AST]:
    """The node and what is in it, but for the bodies of functions and of inner loops."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.For | ast.While):
            yield from _outside_functions(child)
