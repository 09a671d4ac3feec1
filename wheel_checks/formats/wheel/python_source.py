"""The imports of a Python module and the libraries that it opens, by its text alone. Nothing is executed.

The module is parsed with :mod:`ast`, and its statements are followed as far as literals go. An unknown value is ``*``,
which matches anything; both branches of an unknown condition are followed. Calls of functions of the same module are
followed; calls of other modules are actions, which :mod:`wheel_checks.facts.links.opened_first` follows.
"""

from __future__ import annotations

import ast
import posixpath
import warnings
from dataclasses import dataclass
from enum import StrEnum

from wheel_checks.formats.python_syntax import parse
from wheel_checks.formats.wheel.python_expressions import Raw
from wheel_checks.formats.wheel.python_statements import Interpreter

_LONGEST_ERROR = 300
MAX_SIZE = 1 << 20
"""Bytes of a module that are parsed."""


class ActionKind(StrEnum):
    """IMPORT a module; LOAD a library by path; FIND one by its name, as cuda-pathfinder does; CALL a function."""

    IMPORT = "import"
    LOAD = "load"
    FIND = "find"
    CALL = "call"


@dataclass(frozen=True, slots=True)
class Action:
    """One import, opening or call, in the order of the text.

    ``target`` is the dotted name of the imported module or of the called function, "" for a library. ``names`` are the
    imported names, the patterns of the library's path (one of them is opened; relative to site-packages), the names of
    the library, or the arguments. ``tried``: an error of it is caught and goes no further. ``conditional``: it
    is under a condition that the text does not decide; ``one_of``: in a loop that ends with the first that works.
    """

    kind: ActionKind
    target: str
    names: tuple[str, ...]
    line: int
    tried: bool = False
    conditional: bool = False
    one_of: bool = False


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the module and its actions; in patterns, a parameter is its name between two marks."""

    name: str
    parameters: tuple[str, ...]
    actions: tuple[Action, ...]


@dataclass(frozen=True, slots=True)
class PythonSource:
    """One module. ``member`` is its path in site-packages, ``fault`` why it could not be followed to its end ("" if it
    was): a syntax error, or a size or depth that is out of bounds. ``raises`` is the exception that every import of it
    ends in ("ImportError: install it from its own index"), at the line ``raised_at``; "" if none.
    """

    member: str
    actions: tuple[Action, ...] = ()
    functions: tuple[Function, ...] = ()
    fault: str = ""
    raises: str = ""
    raised_at: int = 0

    @property
    def module(self) -> str:
        """The dotted name of the module."""
        return module_name(self.member)

    def function(self, name: str) -> Function | None:
        """The function of the module of that name."""
        return next((function for function in self.functions if function.name == name), None)


def module_name(member: str) -> str:
    """The dotted name of the module at a path in site-packages: ``a.b`` for ``a/b.py`` and ``a/b/__init__.py``."""
    folder, _, name = member.removesuffix(".py").rpartition("/")
    return (folder if name == "__init__" else f"{folder}/{name}".lstrip("/")).replace("/", ".")


def parse_python_source(member: str, data: bytes) -> PythonSource:
    """The module at ``member``, a path in site-packages; errors in its text become facts."""
    if len(data) > MAX_SIZE:
        return PythonSource(member, fault=f"it has {len(data):,} bytes; at most {MAX_SIZE:,} are parsed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the module's author, such as invalid escapes
            tree = parse(data)
        package = module_name(member)
        if posixpath.basename(member) != "__init__.py":
            package = package.rpartition(".")[0]
        found = Interpreter(member, package, tree).run()
    except SyntaxError as error:
        return PythonSource(member, fault=f"it cannot be parsed as Python: {error.msg} (line {error.lineno})")
    except (ValueError, RecursionError, MemoryError) as error:
        return PythonSource(member, fault=f"it cannot be parsed as Python: {type(error).__name__}")
    functions = tuple(Function(name, parameters, _actions(raw)) for name, parameters, raw in found.functions if raw)
    raised = next((node for node in tree.body if isinstance(node, ast.Raise)), None)  # nothing can leave it out
    raises, line = ("", 0) if raised is None else (_error(raised), raised.lineno)
    return PythonSource(member, _actions(found.actions), functions, found.fault, raises, line)


def _error(node: ast.Raise) -> str:
    """The exception as the interpreter would show it, as far as it is there literally."""
    raised = node.exc.func if isinstance(node.exc, ast.Call) else node.exc
    texts = [
        argument.value
        for argument in (node.exc.args if isinstance(node.exc, ast.Call) else ())
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    name = "an exception" if raised is None else ast.unparse(raised)
    return ": ".join([name, *texts])[:_LONGEST_ERROR]


def _actions(found: list[Raw]) -> tuple[Action, ...]:
    return tuple(dict.fromkeys(Action(ActionKind(kind), *rest) for kind, *rest in found))


def matches(pattern: str, path: str) -> bool:
    """True when ``path`` matches ``pattern``, in which ``*`` means any characters."""
    if pattern.startswith("*/") and matches(pattern[2:], path):
        return True
    first, *others = pattern.split("*")
    if not others:
        return pattern == path
    *between, last = others
    if not path.startswith(first) or not path.endswith(last) or len(path) < len(first) + len(last):
        return False
    at, end = len(first), len(path) - len(last)
    for part in between:
        place = path.find(part, at, end)
        if place < 0:
            return False
        at = place + len(part)
    return True


@dataclass(frozen=True, slots=True)
class ModuleSources:
    """Modules of one wheel or environment. ``roots`` are the packages and modules that an import names first;
    ``unread`` are members that may say more and were not read.
    """

    modules: tuple[PythonSource, ...] = ()
    roots: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


def imported_modules(action: Action) -> tuple[str, ...]:
    """The modules that an import may load: ``from a.b import c`` loads a, a.b and perhaps a.b.c, in this order."""
    parts = action.target.split(".")[:20]
    outer = [".".join(parts[: count + 1]) for count in range(len(parts))]
    return (*outer, *(f"{action.target}.{name}" for name in action.names if name != "*"))


def extension_module_name(path: str) -> str:
    """The dotted name under which Python imports the library at a path in site-packages, "" if it cannot."""
    folder, _, name = path.rpartition("/")
    stem, found, _ = name.partition(".")
    return f"{folder}/{stem}".lstrip("/").replace("/", ".") if found and name.endswith(".so") else ""
